-- Read models of measurements: measured samples only; a missing value is a missing row.

-- One row per boot, unit job and metric: the mean of its runs. A boot counts for every variant with this kernel image.
CREATE OR REPLACE VIEW v_boot_metrics AS
SELECT x.booted_at AS "time", t.name AS tree, x.testbox, box.facts->>'label' AS label, m.unit_job, m.metric,
       v.commit, v.subject, 'v' || v.id AS variant, 'x' || x.id AS boot, x.k, x.series,
       b.mean, b.runs::bigint AS runs, x.purpose,
       v.compiler, v.kconfig, v.layout, v.patches <> '[]'::jsonb AS patched, v.origin
FROM boot x
JOIN testbox box ON box.name = x.testbox
JOIN kernel_build kb ON kb.image_sha256 = x.image_sha256
JOIN variant v ON v.build_key = kb.build_key
JOIN tree t ON t.id = v.tree
JOIN measured_metric m ON m.testbox = x.testbox
JOIN boot_mean b ON b.measured = m.id AND b.boot = x.id
WHERE x.origin = 'measured' AND x.id NOT IN (SELECT boot FROM private_boot) AND v.id NOT IN (SELECT variant FROM private_variant);

-- One row per variant (a commit with a compiler, kernel configuration and layout): mean of boot means and the standard deviation between boots
-- (NULL for one boot). `time` is its first measurement; `is_tip`: its commit was the tip of its branch, or the base of the first change, and it
-- is neither patched nor a rebuild in another layout. `place` and `seen_at` are those of the tip, whatever the variant.
CREATE OR REPLACE VIEW v_metric_over_commits AS
SELECT min(b."time") AS "time", b.tree, b.testbox, b.label, b.unit_job, b.metric, b.commit, b.subject, b.variant,
       avg(b.mean) AS mean, stddev_samp(b.mean) AS stddev, count(*) AS boots, sum(b.runs)::bigint AS runs,
       tip.place IS NOT NULL AND b.layout = 0 AND NOT b.patched AS is_tip,
       b.compiler, b.kconfig, b.layout, b.patched, b.origin, tip.place, tip.seen_at
FROM v_boot_metrics b
LEFT JOIN v_tips tip ON tip.tree = b.tree AND tip.commit = b.commit
GROUP BY b.tree, b.testbox, b.label, b.unit_job, b.metric, b.commit, b.subject, b.variant, b.compiler, b.kconfig, b.layout, b.patched, b.origin, tip.place, tip.seen_at;

-- `open`: fresh boots confirmed it, and neither its culprit nor that there is none is known, or its incident is open. `age_seconds` counts from
-- the change of the branch, or from the request. A bisection that ended says the size. `report` is the first mail about its culprit; `held_by` says why it has not left.
CREATE OR REPLACE VIEW v_swings AS
SELECT coalesce(c.ended_at, c.created_at) AS "time", t.name AS tree, s.testbox, box.facts->>'label' AS label, s.unit_job, s.metric, s.direction, coalesce(f.change_pct, s.change_pct) AS change_pct, s.state,
       'c' || c.id AS comparison, 'b' || s.bisection AS bisection, base.commit AS base, head.commit AS head, head.subject AS head_subject,
       culprit.commit AS culprit, culprit.subject AS culprit_subject,
       s.id AS swing, s.source, 'c' || s.proof AS proof, coalesce(cr.detail->>'unit', '') AS unit, cr.detail->>'better' AS better,
       CASE WHEN f.search IS NULL THEN (cr.detail->'interval_pct'->>0)::double precision ELSE f.low_pct END AS low_pct,
       CASE WHEN f.search IS NULL THEN (cr.detail->'interval_pct'->>1)::double precision ELSE f.high_pct END AS high_pct,
       s.direction <> 'better' AND (s.state IN ('open', 'bisecting') OR s.state = 'explained' AND coalesce(i.status = 'open', true)) AS open,
       'i' || i.id AS incident, i.status AS incident_status, 'r' || mail.id AS report, mail.state AS report_state, mail.sent_at,
       CASE WHEN mail.state IN ('held', 'unknown') THEN mail.reason END AS held_by,
       'v' || head.id AS head_variant, 'v' || culprit.id AS culprit_variant,
       coalesce(ch.seen_at, c.created_at) AS seen_at, extract(epoch FROM now() - coalesce(ch.seen_at, c.created_at))::double precision AS age_seconds,
       head.compiler, head.kconfig
FROM swing s
JOIN comparison_pair c ON c.id = s.comparison
JOIN tree t ON t.id = c.tree
JOIN testbox box ON box.name = s.testbox
JOIN variant base ON base.id = c.base
JOIN variant head ON head.id = c.head
JOIN comparison_row cr ON (cr.comparison, cr.testbox, cr.unit_job, cr.metric, cr.against, cr.arm) = (s.comparison, s.testbox, s.unit_job, s.metric, s.against, s.arm)
LEFT JOIN change ch ON ch.id = c.change
LEFT JOIN (bisection_family b JOIN incident_bisection ib ON ib.bisection = b.id) ON b.root = s.bisection
LEFT JOIN incident i ON i.id = ib.incident
LEFT JOIN variant culprit ON culprit.id = i.culprit
LEFT JOIN v_searches f ON f.root = s.bisection AND CASE WHEN culprit.id IS NULL THEN f.sole AND f.status IN ('credible_set', 'creep') ELSE f.commits = ARRAY[culprit.commit] END
LEFT JOIN LATERAL (SELECT r.id, r.state, r.reason, r.sent_at FROM report r WHERE r.incident = i.id AND r.kind = 'first' ORDER BY r.state = 'dropped', r.id DESC LIMIT 1) mail ON true;

-- Values for dashboard variables, read from rows of comparisons (few), not from samples (many). Unit, direction and headline are those of the
-- latest row, because a metric may get another unit.
CREATE OR REPLACE VIEW v_compared AS
SELECT t.name AS tree, r.testbox, r.unit_job, r.metric,
       (array_agg(coalesce(r.detail->>'unit', '') ORDER BY r.comparison DESC))[1] AS unit, (array_agg(r.detail->>'better' ORDER BY r.comparison DESC))[1] AS better,
       (array_agg(coalesce((r.detail->>'headline')::boolean, false) ORDER BY r.comparison DESC))[1] AS headline
FROM comparison_row r
JOIN comparison c ON c.id = r.comparison
JOIN tree t ON t.id = c.tree
WHERE c.private_to IS NULL
GROUP BY t.name, r.testbox, r.unit_job, r.metric;

-- Compilers, configurations and patched kernels that have boots, for variables of dashboards.
CREATE OR REPLACE VIEW v_variants AS
SELECT t.name AS tree, v.compiler, v.kconfig, v.patches <> '[]'::jsonb AS patched, v.layout > 0 AS rebuilt, count(*) AS kernels
FROM variant v
JOIN tree t ON t.id = v.tree
WHERE EXISTS (SELECT 1 FROM kernel_build kb WHERE kb.build_key = v.build_key AND kb.status = 'built') AND v.id NOT IN (SELECT variant FROM private_variant)
GROUP BY t.name, v.compiler, v.kconfig, v.patches <> '[]'::jsonb, v.layout > 0;

-- Rows of comparisons of two kernels; `alias_of` names another metric of the same test with the same numbers.
CREATE OR REPLACE VIEW v_comparison_rows AS
SELECT coalesce(c.ended_at, c.created_at) AS "time", 'c' || c.id AS comparison, c.kind, t.name AS tree, r.testbox, r.unit_job, r.metric,
       r.detail->>'alias_of' AS alias_of, coalesce((r.detail->>'headline')::boolean, false) AS headline, coalesce(r.detail->>'class', 'benchmark') AS class,
       coalesce(r.detail->>'unit', '') AS unit, r.detail->>'better' AS better, r.verdict, r.detail->>'reason' AS reason, r.change_pct,
       (r.detail->'interval_pct'->>0)::double precision AS low_pct, (r.detail->'interval_pct'->>1)::double precision AS high_pct,
       (r.detail->>'min_effect_pct')::double precision AS min_effect_pct,
       base.commit AS base, head.commit AS head, head.subject AS head_subject, head.compiler,
       (r.detail->'base'->>'mean')::double precision AS base_mean, (r.detail->'base'->>'stddev')::double precision AS base_stddev, (r.detail->'base'->>'boots')::integer AS base_boots,
       (r.detail->'head'->>'mean')::double precision AS head_mean, (r.detail->'head'->>'stddev')::double precision AS head_stddev, (r.detail->'head'->>'boots')::integer AS head_boots,
       s.state AS swing_state
FROM comparison_row r
JOIN comparison_pair c ON c.id = r.comparison
JOIN tree t ON t.id = c.tree
JOIN variant base ON base.id = c.base
JOIN variant head ON head.id = c.head
LEFT JOIN swing s ON (s.comparison, s.testbox, s.unit_job, s.metric, s.against, s.arm) = (r.comparison, r.testbox, r.unit_job, r.metric, r.against, r.arm)
WHERE c.private_to IS NULL;

-- What is known of the noise of a metric on a testbox; relative standard deviations in percent, NULL where it is not known.
CREATE OR REPLACE VIEW v_noise AS
SELECT n.at AS "time", n.testbox, n.unit_job, n.metric, 'x' || n.through AS through, (n.detail->>'boots')::integer AS boots, (n.detail->>'runs')::integer AS runs,
       (n.detail->>'images')::integer AS kernels,
       CASE WHEN (n.detail->'run'->>'df')::double precision > 0 THEN 100 * (n.detail->'run'->>'sd')::double precision END AS run_pct,
       CASE WHEN (n.detail->'boot_mean'->>'df')::double precision > 0 THEN 100 * (n.detail->'boot_mean'->>'sd')::double precision END AS boot_pct,
       CASE WHEN (n.detail->'pair'->>'df')::double precision > 0 THEN 100 * (n.detail->'pair'->>'sd')::double precision END AS pair_pct,
       CASE WHEN (n.detail->'day'->>'df')::double precision > 0 THEN 100 * (n.detail->'day'->>'sd')::double precision END AS day_pct,
       CASE WHEN (n.detail->'layout'->>'df')::double precision > 0 THEN 100 * (n.detail->'layout'->>'sd')::double precision END AS layout_pct,
       coalesce((n.detail->>'mode_share')::double precision, 0) AS mode_share,
       n.detail->>'alias_of' AS alias_of
FROM noise_record n;
