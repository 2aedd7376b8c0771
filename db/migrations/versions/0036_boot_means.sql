-- The mean of each metric in each boot is kept, so that panels and lists read means instead of all samples; and a sample names its metric
-- by a number: 83 bytes with its key instead of 147 with the name in both, and no index by metric (127 bytes).

DROP VIEW IF EXISTS v_metric_over_commits, v_boot_metrics;              -- they read names from the table; recreated after the migrations

CREATE TABLE measured_metric (                                          -- one row for each metric that a testbox ever measured
    id       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    testbox  text NOT NULL REFERENCES testbox,
    unit_job text NOT NULL,
    metric   text NOT NULL,
    CONSTRAINT measured_metric_once UNIQUE (testbox, unit_job, metric)
);
CREATE INDEX measured_metric_by_name ON measured_metric (metric, unit_job);
INSERT INTO measured_metric (testbox, unit_job, metric)
SELECT x.testbox, r.unit_job, s.metric FROM sample s JOIN run r ON r.id = s.run JOIN boot x ON x.id = r.boot
GROUP BY x.testbox, r.unit_job, s.metric ORDER BY x.testbox, r.unit_job, s.metric;
ANALYZE measured_metric;

CREATE TABLE narrow_sample (
    run      bigint NOT NULL,
    measured integer NOT NULL,                                          -- of its run's testbox and unit job; exists, because its boot_mean refers to it
    seq      integer NOT NULL DEFAULT 0,
    value    double precision NOT NULL
);
INSERT INTO narrow_sample (run, measured, seq, value)
SELECT s.run, m.id, s.seq, s.value
FROM sample s
JOIN run r ON r.id = s.run
JOIN boot x ON x.id = r.boot
JOIN measured_metric m ON (m.unit_job, m.metric, m.testbox) = (r.unit_job, s.metric, x.testbox);
DROP TABLE sample;
ALTER TABLE narrow_sample RENAME TO sample;
ALTER TABLE sample
    ADD PRIMARY KEY (run, measured, seq),
    ADD CONSTRAINT sample_run_fkey FOREIGN KEY (run) REFERENCES run,
    ADD CONSTRAINT sample_seq_check CHECK (seq >= 0),
    ADD CONSTRAINT sample_value_check CHECK (value = value AND abs(value) < 1e300);    -- no NaN, no infinity: missing is a missing row

CREATE TABLE boot_mean (
    boot     bigint NOT NULL,                                           -- exists, because the runs of its samples refer to it
    mean     double precision NOT NULL,                                 -- of all samples of the boot; not by avg(), which overflows at 1e154
    measured integer NOT NULL,
    runs     integer NOT NULL,
    samples  integer NOT NULL
);
INSERT INTO boot_mean (boot, mean, measured, runs, samples)
SELECT r.boot, sum(s.total) / sum(s.n), s.measured, count(*), sum(s.n)
FROM (SELECT run, measured, sum(value) AS total, count(*) AS n FROM sample GROUP BY run, measured) s
JOIN run r ON r.id = s.run
GROUP BY r.boot, s.measured ORDER BY r.boot, s.measured;
ALTER TABLE boot_mean
    ADD PRIMARY KEY (measured, boot) INCLUDE (mean, runs, samples),     -- a metric over many boots without visiting the table
    ADD CONSTRAINT boot_mean_measured_fkey FOREIGN KEY (measured) REFERENCES measured_metric,
    ADD CONSTRAINT boot_mean_has_samples CHECK (runs > 0 AND samples >= runs);

-- Computes the means whose samples are in the transition table `changed`. New samples of boots without means, as ingest adds them, are all
-- that there are; otherwise the means are recomputed from all current samples. OFFSET 0: row by row through an index,
-- whatever the planner thought of the tables when the session began.
CREATE FUNCTION mean_of_boots() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    known boolean := true;
BEGIN
    IF TG_OP = 'INSERT' THEN
        WITH of_run AS MATERIALIZED (
            SELECT c.run, r.boot FROM (SELECT DISTINCT run FROM changed) c
            CROSS JOIN LATERAL (SELECT boot FROM swingbot.run WHERE id = c.run OFFSET 0) r
        ), of_boot AS MATERIALIZED (
            SELECT r.boot, c.measured, sum(c.value) / count(*) AS mean, count(DISTINCT c.run) AS runs, count(*) AS samples
            FROM changed c JOIN of_run r ON r.run = c.run GROUP BY r.boot, c.measured
        ), added AS (
            INSERT INTO swingbot.boot_mean (boot, mean, measured, runs, samples)
            SELECT boot, mean, measured, runs, samples FROM of_boot ORDER BY boot, measured
            ON CONFLICT (measured, boot) DO NOTHING RETURNING measured
        )
        SELECT (SELECT count(*) FROM added) < (SELECT count(*) FROM of_boot) INTO known;
    END IF;
    IF NOT known THEN
        RETURN NULL;
    END IF;
    WITH of_run AS MATERIALIZED (
        SELECT c.run, r.boot, r.unit_job FROM (SELECT DISTINCT run FROM changed) c
        CROSS JOIN LATERAL (SELECT boot, unit_job FROM swingbot.run WHERE id = c.run OFFSET 0) r
    ), touched AS MATERIALIZED (
        SELECT DISTINCT c.measured, r.boot, r.unit_job FROM changed c JOIN of_run r ON r.run = c.run
    ), present AS MATERIALIZED (
        SELECT t.measured, t.boot, sum(s.value) / count(*) AS mean, count(DISTINCT s.run) AS runs, count(*) AS samples
        FROM touched t
        CROSS JOIN LATERAL (SELECT id FROM swingbot.run WHERE boot = t.boot AND unit_job = t.unit_job OFFSET 0) r
        CROSS JOIN LATERAL (SELECT run, value FROM swingbot.sample WHERE run = r.id AND measured = t.measured OFFSET 0) s
        GROUP BY t.measured, t.boot
    ), gone AS (
        DELETE FROM swingbot.boot_mean b USING touched t
        WHERE b.measured = t.measured AND b.boot = t.boot
          AND NOT EXISTS (SELECT FROM present p WHERE p.measured = t.measured AND p.boot = t.boot)
    )
    INSERT INTO swingbot.boot_mean (boot, mean, measured, runs, samples)
    SELECT boot, mean, measured, runs, samples FROM present ORDER BY boot, measured
    ON CONFLICT (measured, boot) DO UPDATE SET mean = excluded.mean, runs = excluded.runs, samples = excluded.samples;
    RETURN NULL;
END $$;
CREATE TRIGGER sample_inserted AFTER INSERT ON sample REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION mean_of_boots();
CREATE TRIGGER sample_deleted AFTER DELETE ON sample REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION mean_of_boots();
CREATE TRIGGER sample_updated_from AFTER UPDATE ON sample REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION mean_of_boots();
CREATE TRIGGER sample_updated_to AFTER UPDATE ON sample REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION mean_of_boots();
