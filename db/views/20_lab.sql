-- Read models of the lab: queue, running work, results.

CREATE OR REPLACE VIEW v_queue AS
SELECT o.created_at AS "time", 'o' || o.id AS "order", o.kind, o.state, coalesce(o.testbox, 'build worker') AS place, o.testbox, o.k, o.series, o.priority,
       t.name AS tree, v.commit, v.subject, extract(epoch FROM now() - o.created_at)::double precision AS age_seconds,
       (SELECT count(*) FROM attempt a WHERE a.order_id = o.id) AS attempts, o.purpose
FROM orders o
JOIN variant v ON v.id = o.variant
JOIN tree t ON t.id = v.tree
WHERE o.state IN ('waiting', 'ready', 'running') AND o.id NOT IN (SELECT order_id FROM private_order);

-- Every attempt: `status` is that of its outcome, or 'dead', or 'running'; 'infra' and 'dead' are infrastructure failures, never the kernel's.
CREATE OR REPLACE VIEW v_attempts AS
SELECT a.created_at AS "time", a.ended_at, 'o' || o.id AS "order", a.number AS attempt, o.kind, coalesce(o.testbox, 'build worker') AS place, o.testbox,
       CASE a.state WHEN 'ended' THEN coalesce(a.outcome->>'status', 'ended') ELSE a.state END AS status,
       a.state = 'dead' OR coalesce(a.outcome->>'status' = 'infra', false) AS lab_fault,
       CASE WHEN o.id NOT IN (SELECT order_id FROM private_order) THEN coalesce(a.reason, a.outcome->>'reason') END AS reason, extract(epoch FROM coalesce(a.ended_at, now()) - a.created_at)::double precision AS seconds
FROM attempt a
JOIN orders o ON o.id = a.order_id;

-- Activity of each testbox: one interval per attempt. An idle testbox has no row.
CREATE OR REPLACE VIEW v_testbox_activity AS
SELECT a."time", a.ended_at, a.testbox, a."order", a.status, a.lab_fault, a.seconds
FROM v_attempts a
WHERE a.kind = 'boot';

-- `condition` is what it does, or why it does nothing; `why` has the reason in words, `since` the time. `usual_seconds` is the mean of its last 20 boots.
CREATE OR REPLACE VIEW v_testboxes AS
SELECT x.name AS testbox, x.tbox_group, x.facts->>'label' AS label, x.state, x.reason, 'o' || a.order_id AS working_on, l.taken_at AS working_since,
       (SELECT count(*) FROM orders q WHERE q.testbox = x.name AND q.state IN ('waiting', 'ready')) AS queued,
       (SELECT max(b.booted_at) FROM boot b WHERE b.testbox = x.name) AS last_boot,
       coalesce(n.state, 'idle') AS now_state, n.since AS now_since, n.why AS now_why, l.holder AS controller,
       CASE WHEN x.state = 'gone' THEN 'gone' WHEN 'quarantined' IN (x.state, n.state) THEN 'quarantined' WHEN n.state = 'lost' THEN 'lost'
            WHEN x.state = 'drained' THEN 'drained' WHEN l.attempt IS NOT NULL AND coalesce(n.state, 'idle') = 'idle' THEN 'leased' ELSE coalesce(n.state, 'idle') END AS condition,
       coalesce(CASE WHEN x.state IN ('drained', 'quarantined') THEN x.reason END, nullif(n.why, ''), x.reason, '') AS why,
       coalesce(l.taken_at, n.since, x.updated_at) AS since,
       v.commit AS working_commit, v.subject AS working_subject, extract(epoch FROM now() - l.taken_at)::double precision AS working_seconds,
       (SELECT avg(b.seconds) FROM (SELECT seconds FROM boot WHERE testbox = x.name ORDER BY id DESC LIMIT 20) b) AS usual_seconds
FROM testbox x
LEFT JOIN lease l ON l.testbox = x.name
LEFT JOIN attempt a ON a.id = l.attempt
LEFT JOIN orders o ON o.id = a.order_id
LEFT JOIN variant v ON v.id = o.variant AND v.id NOT IN (SELECT variant FROM private_variant)
LEFT JOIN testbox_now n ON n.testbox = x.name;

-- Every change of what a testbox does.
CREATE OR REPLACE VIEW v_testbox_events AS
SELECT e.at AS "time", e.testbox, e.was, e.state, e.why, 'o' || a.order_id AS "order"
FROM testbox_event e
LEFT JOIN attempt a ON a.id = e.attempt;

-- Orders that wait, as a sum of changes: +1 when an order was created, -1 when its first attempt began or it ended without one.
CREATE OR REPLACE VIEW v_queue_moves AS
SELECT o.created_at AS "time", o.kind, coalesce(o.testbox, 'build worker') AS place, o.priority, 1 AS delta
FROM orders o
UNION ALL
SELECT coalesce(a.began, o.ended_at), o.kind, coalesce(o.testbox, 'build worker'), o.priority, -1
FROM orders o
LEFT JOIN LATERAL (SELECT min(x.created_at) AS began FROM attempt x WHERE x.order_id = o.id) a ON true
WHERE coalesce(a.began, o.ended_at) IS NOT NULL;

-- How long each order waited for its first attempt.
CREATE OR REPLACE VIEW v_order_waits AS
SELECT a.created_at AS "time", 'o' || o.id AS "order", o.kind, coalesce(o.testbox, 'build worker') AS place, o.priority,
       extract(epoch FROM a.created_at - o.created_at)::double precision AS seconds
FROM attempt a
JOIN orders o ON o.id = a.order_id
WHERE a.number = 1;

CREATE OR REPLACE VIEW v_kernel_builds AS
SELECT kb.built_at AS "time", kb.build_key, kb.status, kb.cached, kb.seconds, kb.compiler_version, kb.errors[1] AS first_error, 'o' || a.order_id AS "order",
       t.name AS tree, v.commit, v.subject, (kb.sizes->>'text')::bigint AS text_bytes
FROM kernel_build kb
JOIN attempt a ON a.id = kb.attempt
JOIN orders o ON o.id = a.order_id
JOIN variant v ON v.id = o.variant
JOIN tree t ON t.id = v.tree
WHERE kb.origin = 'measured' AND kb.build_key NOT IN (SELECT build_key FROM private_build);

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
WHERE x.origin = 'measured' AND x.id NOT IN (SELECT boot FROM private_boot);
