-- Read models of measurements: measured samples only; a missing value is a missing row.

-- One row per boot, unit job and metric: the mean of its runs. A boot counts for every variant with this kernel image.
CREATE OR REPLACE VIEW v_boot_metrics AS
SELECT x.booted_at AS "time", t.name AS tree, x.testbox, box.facts->>'label' AS label, r.unit_job, s.metric,
       v.commit, v.subject, 'v' || v.id AS variant, 'x' || x.id AS boot, x.k, x.series,
       avg(s.value) AS mean, count(DISTINCT r.id) AS runs, x.purpose
FROM boot x
JOIN testbox box ON box.name = x.testbox
JOIN kernel_build kb ON kb.image_sha256 = x.image_sha256
JOIN variant v ON v.build_key = kb.build_key
JOIN tree t ON t.id = v.tree
JOIN run r ON r.boot = x.id
JOIN sample s ON s.run = r.id
WHERE x.origin = 'measured'
GROUP BY x.id, t.name, box.name, r.unit_job, s.metric, v.id;   -- by the testbox's key: hashing its facts for each sample would take most of the time

-- One row per commit: mean of boot means and the standard deviation between boots (NULL for one boot).
-- `time` is the first measurement of the commit; `is_tip`: it was the tip of its branch, or the base of the first change.
CREATE OR REPLACE VIEW v_metric_over_commits AS
SELECT min(b."time") AS "time", b.tree, b.testbox, b.label, b.unit_job, b.metric, b.commit, b.subject, b.variant,
       avg(b.mean) AS mean, stddev_samp(b.mean) AS stddev, count(*) AS boots, sum(b.runs)::bigint AS runs,
       EXISTS (SELECT 1 FROM change ch JOIN tree t ON t.id = ch.tree WHERE t.name = b.tree AND b.commit IN (ch.old_commit, ch.new_commit)) AS is_tip
FROM v_boot_metrics b
GROUP BY b.tree, b.testbox, b.label, b.unit_job, b.metric, b.commit, b.subject, b.variant;

CREATE OR REPLACE VIEW v_swings AS
SELECT coalesce(c.ended_at, c.created_at) AS "time", t.name AS tree, s.testbox, box.facts->>'label' AS label, s.unit_job, s.metric, s.direction, s.change_pct, s.state,
       'c' || c.id AS comparison, 'b' || s.bisection AS bisection, base.commit AS base, head.commit AS head, head.subject AS head_subject,
       culprit.commit AS culprit, culprit.subject AS culprit_subject
FROM swing s
JOIN comparison_pair c ON c.id = s.comparison
JOIN tree t ON t.id = c.tree
JOIN testbox box ON box.name = s.testbox
JOIN variant base ON base.id = c.base
JOIN variant head ON head.id = c.head
LEFT JOIN incident_bisection ib ON ib.bisection = s.bisection
LEFT JOIN incident i ON i.id = ib.incident
LEFT JOIN variant culprit ON culprit.id = i.culprit;

-- Values for dashboard variables, read from rows of comparisons (few), not from samples (many).
CREATE OR REPLACE VIEW v_compared AS
SELECT DISTINCT t.name AS tree, r.testbox, r.unit_job, r.metric
FROM comparison_row r
JOIN comparison c ON c.id = r.comparison
JOIN tree t ON t.id = c.tree;
