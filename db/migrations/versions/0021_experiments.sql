-- A comparison has arms: two of them, base and head, or as many as an experiment has kernels (docs/experiments.md).

CREATE TABLE comparison_arm (                                           -- a row of the table: one kernel, and how it is booted
    comparison bigint NOT NULL REFERENCES comparison,
    arm        integer NOT NULL CHECK (arm >= 0),                       -- its position, from 0
    name       text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    variant    bigint NOT NULL REFERENCES variant,
    axes       jsonb NOT NULL DEFAULT '{}',                             -- {"compiler": "gcc-12", ...}: its value on each axis
    settings   jsonb NOT NULL DEFAULT '{}',                             -- {"cmdline": "...", "sysctl": {...}} in addition to those of its jobs
    from_block integer NOT NULL DEFAULT 0 CHECK (from_block >= 0),      -- first block of its boots: it was added later
    PRIMARY KEY (comparison, arm),
    CONSTRAINT arm_named_once UNIQUE (comparison, name)
);
CREATE INDEX comparison_arm_by_variant ON comparison_arm (variant);
INSERT INTO comparison_arm (comparison, arm, name, variant)
SELECT c.id, s.arm, s.name, s.variant FROM comparison c CROSS JOIN LATERAL (VALUES (0, 'base', c.base), (1, 'head', c.head)) AS s (arm, name, variant);

CREATE TABLE comparison_arm_spec (                                      -- spec of an arm whose settings make it differ from the part's spec
    comparison bigint NOT NULL,
    arm        integer NOT NULL,
    spec       text NOT NULL REFERENCES boot_spec,                      -- of the part
    own        text NOT NULL REFERENCES boot_spec,
    PRIMARY KEY (comparison, arm, spec),
    FOREIGN KEY (comparison, arm) REFERENCES comparison_arm
);

-- Views on columns that are dropped; db/views has the new definitions.
DROP VIEW IF EXISTS v_comparisons, v_swings;
ALTER TABLE comparison DROP COLUMN base, DROP COLUMN head;

ALTER TABLE comparison ADD COLUMN against text[] NOT NULL DEFAULT '{first}'   -- references of the rows; the first one is that of the table
    CONSTRAINT comparison_against_check CHECK (cardinality(against) >= 1 AND against <@ '{above,first,base,pair}');
ALTER TABLE comparison ADD COLUMN beside text[] NOT NULL DEFAULT '{}';  -- additional columns of a table: locks, size, metrics by name
ALTER TABLE comparison ADD COLUMN looks integer NOT NULL DEFAULT 1 CHECK (looks >= 1);   -- number of looks: one more with each extension
ALTER TABLE comparison DROP CONSTRAINT comparison_kind_check;
ALTER TABLE comparison ADD CONSTRAINT comparison_kind_check             -- experiment: requested, with any number of kernels
    CHECK (kind IN ('asked', 'experiment', 'watch', 'attribute', 'prove', 'anchor', 'gate', 'still')) NOT VALID;
ALTER TABLE comparison VALIDATE CONSTRAINT comparison_kind_check;

-- A row is of one arm against another. Swings belong to comparisons with two arms.
ALTER TABLE swing DROP CONSTRAINT swing_comparison_testbox_unit_job_metric_fkey;
ALTER TABLE comparison_row ADD COLUMN against text NOT NULL DEFAULT 'first';
ALTER TABLE comparison_row ADD COLUMN arm integer NOT NULL DEFAULT 1;
ALTER TABLE comparison_row ADD COLUMN reference integer NOT NULL DEFAULT 0;
ALTER TABLE comparison_row DROP CONSTRAINT comparison_row_pkey;
ALTER TABLE comparison_row ADD PRIMARY KEY (comparison, testbox, unit_job, metric, against, arm);
ALTER TABLE swing ADD COLUMN against text NOT NULL DEFAULT 'first' CHECK (against = 'first');
ALTER TABLE swing ADD COLUMN arm integer NOT NULL DEFAULT 1 CHECK (arm = 1);
ALTER TABLE swing ADD FOREIGN KEY (comparison, testbox, unit_job, metric, against, arm) REFERENCES comparison_row;
