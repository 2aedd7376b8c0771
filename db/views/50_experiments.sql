-- Read models of experiments: N kernels in one table.

-- Verdicts are counted over headline metrics against the first reference, so that each row counts once.
CREATE OR REPLACE VIEW v_experiments AS
SELECT c.created_at AS "time", c.ended_at, 'e' || c.id AS experiment, t.name AS tree, c.status, c.reason,
       extract(epoch FROM coalesce(c.ended_at, now()) - c.created_at)::double precision AS seconds,
       c.against, c.looks, (SELECT count(*) FROM comparison_arm a WHERE a.comparison = c.id) AS rows,
       c.boots, n.worse, n.better, n.changed, n.same, n.unclear
FROM comparison c
JOIN tree t ON t.id = c.tree
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE r.verdict = 'worse') AS worse,
           count(*) FILTER (WHERE r.verdict = 'better') AS better,
           count(*) FILTER (WHERE r.verdict = 'changed') AS changed,
           count(*) FILTER (WHERE r.verdict = 'same') AS same,
           count(*) FILTER (WHERE r.verdict IN ('unclear', 'invalid')) AS unclear
    FROM comparison_row r
    WHERE r.comparison = c.id AND r.against = c.against[1] AND (r.detail->>'headline')::boolean
) n
WHERE c.kind = 'experiment' AND c.private_to IS NULL;

-- One row per kernel, testbox, unit job, metric and reference. A kernel without a reference,
-- such as the first one, has one row with its level and no change. Levels are means of boot means;
-- `stddev` is between boots; missing values are NULL.
CREATE OR REPLACE VIEW v_experiment_rows AS
WITH judged AS (
    SELECT r.comparison, r.testbox, r.unit_job, r.metric, r.arm, r.against, r.reference,
           r.detail->'head' AS side, r.detail, r.change_pct, r.detail->'interval_pct' AS bounds,
           r.verdict, r.detail->>'reason' AS reason
    FROM comparison_row r
    JOIN comparison c ON c.id = r.comparison AND c.kind = 'experiment' AND c.private_to IS NULL
), every AS (
    SELECT * FROM judged
    UNION ALL
    (SELECT DISTINCT ON (j.comparison, j.testbox, j.unit_job, j.metric, j.reference)
            j.comparison, j.testbox, j.unit_job, j.metric, j.reference, NULL::text, NULL::integer,
            j.detail->'base', j.detail, NULL::double precision, NULL::jsonb, NULL::text, NULL::text
     FROM judged j
     WHERE NOT EXISTS (
         SELECT 1 FROM judged o
         WHERE (o.comparison, o.testbox, o.unit_job) = (j.comparison, j.testbox, j.unit_job)
           AND (o.metric, o.arm) = (j.metric, j.reference))
     ORDER BY j.comparison, j.testbox, j.unit_job, j.metric, j.reference, j.against, j.arm)
)
SELECT coalesce(c.ended_at, c.created_at) AS "time", 'e' || c.id AS experiment, t.name AS tree,
       e.arm, a.name AS kernel, v.commit, v.subject, v.compiler, v.kconfig, 'v' || v.id AS variant,
       a.axes, e.testbox, box.facts->>'label' AS label, e.unit_job, e.metric,
       e.detail->>'unit' AS unit, e.detail->>'better' AS better,
       coalesce((e.detail->>'headline')::boolean, false) AS headline,
       (e.side->>'boots')::integer AS boots, (e.side->>'runs')::integer AS runs,
       (e.side->>'mean')::double precision AS mean, (e.side->>'stddev')::double precision AS stddev,
       e.against, ref.name AS reference, e.change_pct,
       (e.bounds->>0)::double precision AS low_pct, (e.bounds->>1)::double precision AS high_pct,
       e.verdict, e.reason
FROM every e
JOIN comparison c ON c.id = e.comparison
JOIN tree t ON t.id = c.tree
JOIN testbox box ON box.name = e.testbox
JOIN comparison_arm a ON (a.comparison, a.arm) = (e.comparison, e.arm)
JOIN variant v ON v.id = a.variant
LEFT JOIN comparison_arm ref ON (ref.comparison, ref.arm) = (e.comparison, e.reference);
