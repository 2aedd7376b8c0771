-- Each run has a place under LKP's result root names, knows which parser read it, and keeps what a mended parser changed.

CREATE TABLE result_root (
    id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL                                                  -- result/<testcase>/<path params>/<tbox_group>/<rootfs>/<kconfig>/<compiler>/<commit>
        CONSTRAINT result_root_is_a_path CHECK (name ~ '^result(/[-a-zA-Z0-9+=:.%_]{1,255}){7}$' AND name !~ '/\.{1,2}(/|$)'),
    CONSTRAINT result_root_once UNIQUE (name)
);

ALTER TABLE run ADD COLUMN result_root bigint REFERENCES result_root;
ALTER TABLE run ADD COLUMN root_run integer;                            -- <run>: counts from 0 within the result root
ALTER TABLE run ADD COLUMN parser text                                  -- hash of the code that read its samples; NULL: read before that was noted
    CONSTRAINT run_parser_is_a_hash CHECK (parser ~ '^[0-9a-f]{64}$');
ALTER TABLE run ADD CONSTRAINT run_has_one_place UNIQUE (result_root, root_run);
ALTER TABLE run ADD CONSTRAINT run_place_is_whole CHECK ((result_root IS NULL) = (root_run IS NULL) AND (root_run IS NULL OR root_run >= 0));

-- What `swingbot reparse` changed, so that a number which was printed once can always be explained.
CREATE TABLE reparse (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run        bigint NOT NULL REFERENCES run,
    old_parser text,
    new_parser text NOT NULL,
    old_status text NOT NULL,
    new_status text NOT NULL,
    changes    jsonb NOT NULL,                                          -- {"metric": {"old": [1.0], "new": [2.0]}}; an empty list: there was, there is none
    changed_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX reparse_by_run ON reparse (run);

-- All values of one metric, without the table: a run's samples stand together there, so that one metric's are on every page of it.
DROP INDEX sample_by_metric;
CREATE INDEX sample_by_metric ON sample (metric, run) INCLUDE (value);
