-- Read models of the lab: queue, running work, results.

CREATE OR REPLACE VIEW v_queue AS
SELECT o.created_at AS "time", 'o' || o.id AS "order", o.kind, o.state, coalesce(o.testbox, 'build worker') AS place, o.testbox, o.k, o.series, o.priority,
       t.name AS tree, v.commit, v.subject, extract(epoch FROM now() - o.created_at)::double precision AS age_seconds,
       (SELECT count(*) FROM attempt a WHERE a.order_id = o.id) AS attempts, o.purpose
FROM orders o
JOIN variant v ON v.id = o.variant
JOIN tree t ON t.id = v.tree
WHERE o.state IN ('waiting', 'ready', 'running');

-- Every attempt: `status` is that of its outcome, or 'dead', or 'running'; 'infra' and 'dead' are infrastructure failures, never the kernel's.
CREATE OR REPLACE VIEW v_attempts AS
SELECT a.created_at AS "time", a.ended_at, 'o' || o.id AS "order", a.number AS attempt, o.kind, coalesce(o.testbox, 'build worker') AS place, o.testbox,
       CASE a.state WHEN 'ended' THEN coalesce(a.outcome->>'status', 'ended') ELSE a.state END AS status,
       a.state = 'dead' OR coalesce(a.outcome->>'status' = 'infra', false) AS lab_fault,
       coalesce(a.reason, a.outcome->>'reason') AS reason, extract(epoch FROM coalesce(a.ended_at, now()) - a.created_at)::double precision AS seconds
FROM attempt a
JOIN orders o ON o.id = a.order_id;

-- Activity of each testbox: one interval per attempt. An idle testbox has no row.
CREATE OR REPLACE VIEW v_testbox_activity AS
SELECT a."time", a.ended_at, a.testbox, a."order", a.status, a.lab_fault, a.seconds
FROM v_attempts a
WHERE a.kind = 'boot';

CREATE OR REPLACE VIEW v_testboxes AS
SELECT x.name AS testbox, x.tbox_group, x.facts->>'label' AS label, x.state, x.reason, 'o' || a.order_id AS working_on, l.taken_at AS working_since,
       (SELECT count(*) FROM orders q WHERE q.testbox = x.name AND q.state IN ('waiting', 'ready')) AS queued,
       (SELECT max(b.booted_at) FROM boot b WHERE b.testbox = x.name) AS last_boot,
       coalesce(n.state, 'idle') AS now_state, n.since AS now_since, n.why AS now_why, l.holder AS controller
FROM testbox x
LEFT JOIN lease l ON l.testbox = x.name
LEFT JOIN attempt a ON a.id = l.attempt
LEFT JOIN testbox_now n ON n.testbox = x.name;

CREATE OR REPLACE VIEW v_kernel_builds AS
SELECT kb.built_at AS "time", kb.build_key, kb.status, kb.cached, kb.seconds, kb.compiler_version, kb.errors[1] AS first_error, 'o' || a.order_id AS "order",
       t.name AS tree, v.commit, v.subject, (kb.sizes->>'text')::bigint AS text_bytes
FROM kernel_build kb
JOIN attempt a ON a.id = kb.attempt
JOIN orders o ON o.id = a.order_id
JOIN variant v ON v.id = o.variant
JOIN tree t ON t.id = v.tree
WHERE kb.origin = 'measured';

CREATE OR REPLACE VIEW v_boots AS
SELECT x.booted_at AS "time", 'x' || x.id AS boot, x.testbox, x.outcome, x.outcome = 'up' AS up, x.reason, x.k, x.series, x.seconds, 'o' || x.order_id AS "order",
       t.name AS tree, v.commit, v.subject,
       (SELECT count(*) FROM run r WHERE r.boot = x.id) AS runs,
       (SELECT count(*) FROM run r WHERE r.boot = x.id AND r.status NOT IN ('ok', 'warmup')) AS runs_not_ok,
       (SELECT count(*) FROM run r WHERE r.boot = x.id AND r.status = 'invalid') AS runs_invalid, x.purpose
FROM boot x
JOIN orders o ON o.id = x.order_id
JOIN variant v ON v.id = o.variant
JOIN tree t ON t.id = v.tree
WHERE x.origin = 'measured';
