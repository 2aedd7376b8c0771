-- Read model of histories over the tips of watched branches: one row per finding. A step, a candidate for one and a change of modes begin at
-- `commit`, with 95 % at one of `first_commit` to `last_commit`; `change_pct` of modes is from the lowest to the highest.

CREATE OR REPLACE VIEW v_tree_findings AS
WITH f AS (
    SELECT t.name AS tree, h.testbox, h.unit_job, h.metric, h.findings, h.findings->'tips' AS tips
    FROM tree_history h
    JOIN tree t ON t.id = h.tree
    WHERE t.state = 'watched'
), found AS (
    SELECT f.tree, f.testbox, f.unit_job, f.metric, f.tips, k.kind, one
    FROM f
    CROSS JOIN (VALUES ('step', 'changes'), ('candidate', 'candidate'), ('creep', 'creep'), ('spread', 'spread'), ('boots_spread', 'boots_spread'),
                       ('mode_change', 'mode_changes')) AS k (kind, key)
    CROSS JOIN LATERAL jsonb_array_elements(CASE jsonb_typeof(f.findings->k.key) WHEN 'array' THEN f.findings->k.key WHEN 'object' THEN jsonb_build_array(f.findings->k.key) END) AS one
    UNION ALL
    SELECT f.tree, f.testbox, f.unit_job, f.metric, f.tips, 'modes',
           jsonb_build_object('pct', 100 * ((f.findings->'modes'->-1->>'value')::double precision / nullif((f.findings->'modes'->0->>'value')::double precision, 0) - 1))
    FROM f
    WHERE jsonb_typeof(f.findings->'modes') = 'array'
)
SELECT tree, testbox, unit_job, metric, kind, tips->(one->>'at')->>'commit' AS commit, tips->(one->>'at')->>'comparison' AS comparison,
       (one->>'pct')::double precision AS change_pct, (one->>'low_pct')::double precision AS low_pct, (one->>'high_pct')::double precision AS high_pct,
       (one->>'times')::double precision AS times, (one->>'p')::double precision AS p,
       tips->(one->>'first')->>'commit' AS first_commit, tips->(one->>'last')->>'commit' AS last_commit
FROM found;
