-- Read models of requests: comparisons and bisections.

CREATE OR REPLACE VIEW v_comparisons AS
SELECT c.created_at AS "time", c.ended_at, 'c' || c.id AS comparison, c.kind, t.name AS tree, base.commit AS base, head.commit AS head, head.subject AS head_subject, c.status, c.reason,
       extract(epoch FROM coalesce(c.ended_at, now()) - c.created_at)::double precision AS seconds,
       (SELECT count(*) FROM comparison_row r WHERE r.comparison = c.id AND r.verdict = 'worse' AND r.detail->>'alias_of' IS NULL) AS worse,
       (SELECT count(*) FROM comparison_row r WHERE r.comparison = c.id) AS rows
FROM comparison_pair c
JOIN tree t ON t.id = c.tree
JOIN variant base ON base.id = c.base
JOIN variant head ON head.id = c.head
WHERE c.private_to IS NULL;

-- `step_at` is its last decision or result; `quiet_seconds` counts since then, also after it has ended.
CREATE OR REPLACE VIEW v_bisections AS
SELECT b.created_at AS "time", b.ended_at, 'b' || b.id AS bisection, b.origin, t.name AS tree, b.testbox, b.unit_job, b.metric, b.status, b.reason,
       extract(epoch FROM coalesce(b.ended_at, now()) - b.created_at)::double precision AS seconds,
       (SELECT count(*) - 1 FROM bisection_point p WHERE p.bisection = b.id) AS commits,
       (SELECT count(DISTINCT o.boot) FROM observation o WHERE o.bisection = b.id) AS boots,
       b.conclusion->'culprit'->>'commit' AS culprit, b.conclusion->'culprit'->>'subject' AS culprit_subject,
       (b.conclusion->>'probability')::double precision AS probability, (b.conclusion->>'change_pct')::double precision AS change_pct,
       b.belief->>'phase' AS phase, b.belief->>'why' AS why, latest.step_at, extract(epoch FROM now() - latest.step_at)::double precision AS quiet_seconds
FROM bisection b
JOIN tree t ON t.id = b.tree
CROSS JOIN LATERAL (
    SELECT greatest(b.created_at, (SELECT max(s.at) FROM bisection_step s WHERE s.bisection = b.id), (SELECT max(o.seen_at) FROM observation o WHERE o.bisection = b.id)) AS step_at
) latest;

-- The journal of a bisection: one row per decision. `boots` counts the boots that it asked for.
CREATE OR REPLACE VIEW v_bisection_steps AS
SELECT s.at AS "time", 'b' || s.bisection AS bisection, t.name AS tree, b.testbox, b.unit_job, b.metric, s.number AS step, s.action->>'do' AS action, s.action->>'phase' AS phase,
       coalesce(s.action->>'why', s.action->>'reason') AS why,
       CASE WHEN json_typeof(s.action->'requests') = 'array' THEN json_array_length(s.action->'requests') ELSE 0 END AS boots,
       extract(epoch FROM s.at - b.created_at)::double precision AS seconds
FROM bisection_step s
JOIN bisection b ON b.id = s.bisection
JOIN tree t ON t.id = b.tree;

-- The commits of a bisection in order, with what it believes of each: the probability that it is the culprit, NULL before the first step.
CREATE OR REPLACE VIEW v_bisection_points AS
SELECT b.created_at AS "time", 'b' || b.id AS bisection, t.name AS tree, b.testbox, b.unit_job, b.metric, b.status, p.idx AS place, v.commit, v.subject, 'v' || v.id AS variant,
       coalesce(ended.probability, running.probability) AS probability, p.skipped,
       count(DISTINCT o.boot) AS boots, avg(o.mean) AS mean, stddev_samp(o.mean) AS stddev
FROM bisection b
JOIN tree t ON t.id = b.tree
JOIN bisection_point p ON p.bisection = b.id
JOIN variant v ON v.id = p.variant
LEFT JOIN LATERAL (SELECT (c->>'probability')::double precision AS probability FROM jsonb_array_elements(CASE WHEN jsonb_typeof(b.conclusion->'candidates') = 'array' THEN b.conclusion->'candidates' END) c WHERE c->>'commit' = v.commit LIMIT 1) ended ON true
LEFT JOIN LATERAL (SELECT (c->>'probability')::double precision AS probability FROM jsonb_array_elements(CASE WHEN jsonb_typeof(b.belief->'posterior') = 'array' THEN b.belief->'posterior' END) c WHERE (c->>'idx')::integer = p.idx LIMIT 1) running ON true
LEFT JOIN LATERAL (SELECT x.boot, (SELECT avg(u) FROM unnest(x."values") u) AS mean FROM observation x WHERE x.bisection = b.id AND x.idx = p.idx) o ON true
GROUP BY b.id, t.name, p.idx, p.skipped, v.id, ended.probability, running.probability;
