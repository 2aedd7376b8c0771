-- Read models of requests: comparisons and bisections.

CREATE OR REPLACE VIEW v_comparisons AS
SELECT c.created_at AS "time", c.ended_at, 'c' || c.id AS comparison, c.kind, t.name AS tree, base.commit AS base, head.commit AS head, head.subject AS head_subject, c.status, c.reason,
       extract(epoch FROM coalesce(c.ended_at, now()) - c.created_at)::double precision AS seconds,
       (SELECT count(*) FROM comparison_row r WHERE r.comparison = c.id AND r.verdict = 'worse' AND r.detail->>'alias_of' IS NULL) AS worse,
       (SELECT count(*) FROM comparison_row r WHERE r.comparison = c.id) AS rows
FROM comparison_pair c
JOIN tree t ON t.id = c.tree
JOIN variant base ON base.id = c.base
JOIN variant head ON head.id = c.head;

CREATE OR REPLACE VIEW v_bisections AS
SELECT b.created_at AS "time", b.ended_at, 'b' || b.id AS bisection, b.origin, t.name AS tree, b.testbox, b.unit_job, b.metric, b.status, b.reason,
       extract(epoch FROM coalesce(b.ended_at, now()) - b.created_at)::double precision AS seconds,
       (SELECT count(*) - 1 FROM bisection_point p WHERE p.bisection = b.id) AS commits,
       (SELECT count(DISTINCT o.boot) FROM observation o WHERE o.bisection = b.id) AS boots,
       b.conclusion->'culprit'->>'commit' AS culprit, b.conclusion->'culprit'->>'subject' AS culprit_subject,
       (b.conclusion->>'probability')::double precision AS probability, (b.conclusion->>'change_pct')::double precision AS change_pct
FROM bisection b
JOIN tree t ON t.id = b.tree;
