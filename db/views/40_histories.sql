-- Searches with the `tips` in their range, one of which brought the change; `own` is the first that has the (first) culprit.
CREATE OR REPLACE VIEW v_searched_tips AS
WITH tips AS MATERIALIZED (
    SELECT tree, commit, place FROM v_tips
)
SELECT s.tree, s.testbox, s.unit_job, s.metric, s.number, s.search, s.status, s.root, s.merged, s.good, s.bad, s.commits, s.change_pct, s.low_pct, s.high_pct,
       ARRAY(SELECT tip.commit FROM tips tip WHERE tip.tree = s.tree AND tip.place BETWEEN coalesce(good.place + 1, bad.place) AND bad.place) AS tips,
       (SELECT v.commit FROM bisection_point p JOIN variant v ON v.id = p.variant JOIN tips tip ON tip.tree = s.tree AND tip.commit = v.commit
        WHERE p.bisection = s.root
          AND p.idx >= (SELECT q.idx FROM bisection_point q JOIN variant w ON w.id = q.variant WHERE q.bisection = s.root AND w.commit = coalesce(s.merged, s.commits[1]))
        ORDER BY p.idx LIMIT 1) AS own
FROM v_searches s
LEFT JOIN tips bad ON bad.tree = s.tree AND bad.commit = s.bad
LEFT JOIN tips good ON good.tree = s.tree AND good.commit = s.good;

-- Read model of histories over the tips of watched branches: one row per finding. A step, a candidate for one and a change of modes begin at
-- `commit`, with 95 % at one of `first_commit` to `last_commit`; `change_pct` of modes is from the lowest to the highest. Where a `search` has
-- finished (core/stats/findings.py, with_searches), a step has its commits and size, or is `denied`: there is none; a drift is a creep.
-- `machine`: the testbox's anchor moved with the step.
CREATE OR REPLACE VIEW v_tree_findings AS
WITH f AS (
    SELECT t.name AS tree, h.testbox, h.unit_job, h.metric, h.findings, h.findings->'tips' AS tips
    FROM tree_history h
    JOIN tree t ON t.id = h.tree
    WHERE t.state = 'watched'
), found AS (
    SELECT f.tree, f.testbox, f.unit_job, f.metric, f.tips, k.kind, one, row_number() OVER (ORDER BY k.rank, n) AS n,
           ARRAY[f.tips->(one->>'at')->>'commit', f.tips->(one->>'first')->>'commit', f.tips->(one->>'last')->>'commit'] AS places
    FROM f
    CROSS JOIN (VALUES (1, 'step', 'changes'), (2, 'candidate', 'candidate'), (3, 'creep', 'creep'), (3, 'spread', 'spread'), (3, 'boots_spread', 'boots_spread'),
                       (3, 'mode_change', 'mode_changes')) AS k (rank, kind, key)
    CROSS JOIN LATERAL jsonb_array_elements(CASE jsonb_typeof(f.findings->k.key) WHEN 'array' THEN f.findings->k.key WHEN 'object' THEN jsonb_build_array(f.findings->k.key) END)
        WITH ORDINALITY AS ones (one, n)
    UNION ALL
    SELECT f.tree, f.testbox, f.unit_job, f.metric, f.tips, 'modes',
           jsonb_build_object('pct', 100 * ((f.findings->'modes'->-1->>'value')::double precision / nullif((f.findings->'modes'->0->>'value')::double precision, 0) - 1)), 0, NULL
    FROM f
    WHERE jsonb_typeof(f.findings->'modes') = 'array'
), fits AS (
    SELECT found.n, w.search, w.number, w.status, w.commits, w.change_pct, w.low_pct, w.high_pct, found.places <@ w.tips AS within,
           (found.one->>'pct')::double precision * w.change_pct > 0 AS along, cardinality(w.commits) > 0 AS named,
           row_number() OVER (PARTITION BY w.search, w.commits
                              ORDER BY ((found.one->>'pct')::double precision * w.change_pct > 0) IS TRUE DESC, (w.own = ANY (found.places)) IS TRUE DESC,
                                       abs((found.one->>'pct')::double precision - w.change_pct), found.n) AS best,
           count(*) FILTER (WHERE found.places <@ w.tips) OVER (PARTITION BY w.search, w.commits) AS inside
    FROM found
    JOIN v_searched_tips w USING (tree, testbox, unit_job, metric)
    WHERE found.kind IN ('step', 'candidate') AND found.places && w.tips
), known AS (
    SELECT DISTINCT ON (n, commits) * FROM fits WHERE named AND along AND best = 1 ORDER BY n, commits, number DESC, search DESC
), unnamed AS (
    SELECT DISTINCT ON (n) * FROM fits
    WHERE NOT named AND within AND (along OR inside = 1 AND status <> 'creep') AND n NOT IN (SELECT n FROM known)
    ORDER BY n, number DESC, search DESC
)
SELECT found.tree, found.testbox, found.unit_job, found.metric,
       CASE WHEN w.search IS NULL THEN found.kind WHEN w.named THEN 'step' WHEN w.status = 'creep' THEN 'creep' ELSE 'denied' END AS kind,
       coalesce(w.commits[1], tips->(one->>'at')->>'commit') AS commit, tips->(one->>'at')->>'comparison' AS comparison,
       CASE WHEN w.search IS NULL THEN (one->>'pct')::double precision ELSE w.change_pct END AS change_pct,
       CASE WHEN w.search IS NULL THEN (one->>'low_pct')::double precision ELSE w.low_pct END AS low_pct,
       CASE WHEN w.search IS NULL THEN (one->>'high_pct')::double precision ELSE w.high_pct END AS high_pct,
       (one->>'times')::double precision AS times, CASE WHEN w.search IS NULL THEN (one->>'p')::double precision END AS p,
       coalesce(w.commits[1], tips->(one->>'first')->>'commit') AS first_commit, coalesce(w.commits[cardinality(w.commits)], tips->(one->>'last')->>'commit') AS last_commit,
       w.search, w.search IS NULL AND coalesce((one->>'machine')::boolean, false) AS machine
FROM found
LEFT JOIN (SELECT * FROM known UNION ALL SELECT * FROM unnamed) w ON w.n = found.n AND found.n > 0;
