-- Each run has a result root name as in LKP and the version of its parser; changes by reparsing are recorded.

CREATE TABLE result_root (
    id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL                                                  -- result/<testcase>/<path params>/<tbox_group>/<rootfs>/<kconfig>/<compiler>/<commit>
        CONSTRAINT result_root_is_a_path CHECK (name ~ '^result(/[-a-zA-Z0-9+=:.%_]{1,255}){7}$' AND name !~ '/\.{1,2}(/|$)'),
    CONSTRAINT result_root_once UNIQUE (name)
);

ALTER TABLE run ADD COLUMN result_root bigint REFERENCES result_root;
ALTER TABLE run ADD COLUMN root_run integer;                            -- <run>: counts from 0 within the result root
ALTER TABLE run ADD COLUMN parser text                                  -- hash of the code that parsed its samples; NULL: parsed before this was recorded
    CONSTRAINT run_parser_is_a_hash CHECK (parser ~ '^[0-9a-f]{64}$');
ALTER TABLE run ADD CONSTRAINT run_has_one_place UNIQUE (result_root, root_run);
ALTER TABLE run ADD CONSTRAINT run_place_is_whole CHECK ((result_root IS NULL) = (root_run IS NULL) AND (root_run IS NULL OR root_run >= 0));

-- Changes made by `swingbot reparse`, so that a published number can always be explained.
CREATE TABLE reparse (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run        bigint NOT NULL REFERENCES run,
    old_parser text,
    new_parser text NOT NULL,
    old_status text NOT NULL,
    new_status text NOT NULL,
    changes    jsonb NOT NULL,                                          -- {"metric": {"old": [1.0], "new": [2.0]}}; an empty list: no values
    changed_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX reparse_by_run ON reparse (run);

-- All values of one metric, index-only: the table stores samples by run, so each page has a few values of one metric.
DROP INDEX sample_by_metric;
CREATE INDEX sample_by_metric ON sample (metric, run) INCLUDE (value);
