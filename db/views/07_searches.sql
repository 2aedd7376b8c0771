-- What finished searches found of a metric of a branch: a bisection, or the pairs of a swing that they refuted. `commits`: one culprit, or those
-- of which one is it; none if there is no step. Sizes are the culprit's against its parent; of a creep, those of the range. The branch of a merge
-- is searched by a bisection of its own, whose culprit replaces the merge; `root` is the bisection that a swing started. A culprit that was
-- measured against its parent for its incident has the size of those fresh boots, as its mail has.
-- `sole`: no other search of its root found anything, so that its size is that of the swing.
CREATE OR REPLACE VIEW v_searches AS
WITH search AS (
    SELECT t.name AS tree, b.testbox, b.unit_job, b.metric, b.id AS number, 'b' || b.id AS search, b.status, down.root, down.merged, root.good, root.bad,
           CASE WHEN b.status IN ('creep', 'not_reproduced') THEN '{}' WHEN b.status = 'credible_set' THEN ARRAY(SELECT m->>'commit' FROM jsonb_array_elements(one->'members') m)
                ELSE ARRAY[one->>'commit'] END AS commits,
           CASE WHEN b.status <> 'not_reproduced' THEN coalesce(fresh.change_pct, (one->>'change_pct')::double precision) END AS change_pct,
           CASE WHEN fresh.change_pct IS NULL THEN coalesce(one->'interval_pct', b.conclusion->'interval_pct') ELSE fresh.bounds END AS bounds
    FROM bisection_family down
    JOIN bisection b ON b.id = down.id
    JOIN bisection root ON root.id = down.root
    JOIN tree t ON t.id = b.tree
    CROSS JOIN LATERAL jsonb_array_elements(CASE WHEN b.status IN ('culprit', 'several') THEN b.conclusion->'culprits' ELSE jsonb_build_array(b.conclusion) END) AS one
    LEFT JOIN LATERAL (
        SELECT r.change_pct, nullif(r.detail->'interval_pct', 'null') AS bounds
        FROM sighting s
        JOIN variant v ON v.id = s.culprit AND v.commit = one->>'commit'
        JOIN incident i ON i.id = s.incident
        JOIN comparison_row r ON r.comparison = coalesce(s.comparison, i.comparison) AND r.against = 'first' AND r.arm = 1
            AND (r.testbox, r.unit_job, r.metric) = (b.testbox, b.unit_job, b.metric)
        WHERE s.bisection = b.id AND b.status IN ('culprit', 'several') AND r.verdict <> 'invalid' AND r.change_pct IS NOT NULL
        ORDER BY s.id DESC LIMIT 1
    ) fresh ON true
    WHERE b.status IN ('creep', 'not_reproduced') AND b.parent IS NULL
       OR b.status IN ('culprit', 'several', 'credible_set') AND one->>'change_pct' IS NOT NULL
          AND NOT EXISTS (SELECT 1 FROM bisection k WHERE k.parent = b.id AND k.merged = one->>'commit' AND k.status IN ('culprit', 'several', 'credible_set'))
    UNION ALL
    SELECT t.name, s.testbox, s.unit_job, s.metric, s.proof, 'c' || s.proof, 'refuted', NULL, NULL, base.commit, head.commit, '{}', NULL, NULL
    FROM swing s
    JOIN comparison_pair c ON c.id = s.proof
    JOIN variant base ON base.id = c.base
    JOIN variant head ON head.id = c.head
    JOIN tree t ON t.id = c.tree
    WHERE s.state = 'refuted' AND s.source <> 'spread' AND s.evidence->>'answer' = 'reject'
)
SELECT tree, testbox, unit_job, metric, number, search, status, root, merged, good, bad, commits, change_pct,
       (bounds->>0)::double precision AS low_pct, (bounds->>1)::double precision AS high_pct,
       count(*) OVER (PARTITION BY root) = 1 AS sole
FROM search;
