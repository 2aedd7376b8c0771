-- Read model of histories over the tips of watched branches: one row per finding.

CREATE OR REPLACE VIEW v_tree_findings AS
WITH f AS (
    SELECT t.name AS tree, h.testbox, h.unit_job, h.metric, h.findings, h.findings->'tips' AS tips
    FROM tree_history h
    JOIN tree t ON t.id = h.tree
    WHERE t.state = 'watched'
)
SELECT f.tree, f.testbox, f.unit_job, f.metric, 'step' AS kind, f.tips->(c->>'at')->>'commit' AS commit, f.tips->(c->>'at')->>'comparison' AS comparison,
       (c->>'pct')::double precision AS change_pct, (c->>'low_pct')::double precision AS low_pct, (c->>'high_pct')::double precision AS high_pct,
       NULL::double precision AS times, (c->>'p')::double precision AS p
FROM f, jsonb_array_elements(f.findings->'changes') c
UNION ALL
SELECT f.tree, f.testbox, f.unit_job, f.metric, 'creep', NULL, NULL, (f.findings->'creep'->>'pct')::double precision, NULL, NULL, NULL, (f.findings->'creep'->>'p')::double precision
FROM f
WHERE jsonb_typeof(f.findings->'creep') = 'object'
UNION ALL
SELECT f.tree, f.testbox, f.unit_job, f.metric, 'spread', f.tips->(f.findings->'spread'->>'at')->>'commit', f.tips->(f.findings->'spread'->>'at')->>'comparison', NULL, NULL, NULL,
       (f.findings->'spread'->>'times')::double precision, (f.findings->'spread'->>'p')::double precision
FROM f
WHERE jsonb_typeof(f.findings->'spread') = 'object'
UNION ALL
SELECT f.tree, f.testbox, f.unit_job, f.metric, 'boots_spread', f.tips->(f.findings->'boots_spread'->>'at')->>'commit', f.tips->(f.findings->'boots_spread'->>'at')->>'comparison', NULL, NULL, NULL,
       (f.findings->'boots_spread'->>'times')::double precision, (f.findings->'boots_spread'->>'p')::double precision
FROM f
WHERE jsonb_typeof(f.findings->'boots_spread') = 'object'
UNION ALL
SELECT f.tree, f.testbox, f.unit_job, f.metric, 'modes', NULL, NULL, (f.findings->'modes'->>'apart_pct')::double precision, NULL, NULL, NULL, NULL
FROM f
WHERE jsonb_typeof(f.findings->'modes') = 'object';
