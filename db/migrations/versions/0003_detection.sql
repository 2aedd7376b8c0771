-- Swings are confirmed by fresh pairs of boots; noise records; anchor boots show whether a testbox has drifted.

ALTER TABLE comparison DROP CONSTRAINT comparison_kind_check;
ALTER TABLE comparison ADD CONSTRAINT comparison_kind_check                 -- prove: fresh pairs for one swing; anchor: one kernel with itself
    CHECK (kind IN ('asked', 'watch', 'attribute', 'prove', 'anchor'));

ALTER TABLE swing DROP CONSTRAINT swing_state_check;
ALTER TABLE swing ADD CONSTRAINT swing_state_check
    CHECK (state IN ('suspected', 'refuted', 'open', 'bisecting', 'explained', 'noted', 'not_found'));
ALTER TABLE swing ADD COLUMN source text NOT NULL DEFAULT 'base'            -- source of the alarm: the comparison, the last tips, an older anchor
    CONSTRAINT swing_source_check CHECK (source IN ('base', 'history', 'creep'));
ALTER TABLE swing ADD COLUMN anchor bigint REFERENCES variant;              -- creep: the older tip used as reference
ALTER TABLE swing ADD COLUMN proof bigint REFERENCES comparison;            -- the pairs that were booted to confirm it
ALTER TABLE swing ADD COLUMN evidence jsonb NOT NULL DEFAULT '{}';          -- {"answer", "bf", "pairs", "wanted", "reason"}
ALTER TABLE swing ADD CONSTRAINT swing_creep_has_anchor CHECK ((source = 'creep') = (anchor IS NOT NULL));
CREATE INDEX swing_by_proof ON swing (proof) WHERE proof IS NOT NULL;

ALTER TABLE bisection_want DROP CONSTRAINT bisection_want_phase_check;
ALTER TABLE bisection_want ADD CONSTRAINT bisection_want_phase_check CHECK (phase IN ('history', 'ends', 'search', 'confirm'));

CREATE TABLE noise_record (                                                 -- derived from boots; stored to show what a bisection started from
    testbox  text NOT NULL REFERENCES testbox,
    unit_job text NOT NULL,
    metric   text NOT NULL,
    detail   jsonb NOT NULL,                                                -- core/model/noise.py: NoiseRecord
    through  bigint NOT NULL REFERENCES boot,                               -- the latest boot included
    at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (testbox, unit_job, metric)
);
CREATE INDEX boot_by_testbox ON boot (testbox, id);
