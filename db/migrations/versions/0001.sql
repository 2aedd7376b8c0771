-- The schema: facts with constraints and named keys; nothing is derived from Buildbot's tables.
-- Ids shown to people have a letter (t12, v3, o7, x9, c5, b2, i1, r4), added at the edge; tables have the number.
-- What later migrations add, they add to the noun it belongs to; the views are in db/views/.

-- ---------------------------------------------------------------------------
-- Trees: watched branches, their changes and their patches.

CREATE TABLE tree (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name        text NOT NULL CHECK (name ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$'),
    url         text NOT NULL,
    branch      text NOT NULL,
    trust       text NOT NULL DEFAULT 'trusted' CHECK (trust IN ('trusted', 'untrusted')),
    base_commit text NOT NULL CHECK (base_commit ~ '^[0-9a-f]{40}$'),   -- commit that --base named when the tree was added
    tip_commit  text CHECK (tip_commit ~ '^[0-9a-f]{40}$'),             -- last tip that became a change; NULL before the first poll
    job_files   jsonb NOT NULL DEFAULT '[]',                            -- [{"name": "hackbench.yaml", "text": "..."}], as given at `tree add`
    testboxes   text[] NOT NULL DEFAULT '{}',
    paths       text[] NOT NULL DEFAULT '{}',                           -- globs; empty: every path matters
    kconfig     text NOT NULL DEFAULT 'vm-x86_64',
    compiler    text NOT NULL DEFAULT 'gcc',
    min_effect_pct double precision CHECK (min_effect_pct > 0),         -- smallest change of interest in percent; NULL: each program's
    state       text NOT NULL DEFAULT 'watched' CHECK (state IN ('watched', 'removed')),
    problem     text,                                                   -- why the last poll failed, in one sentence; NULL if it succeeded
    polled_at   timestamptz,
    created_at  timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX tree_name_of_watched ON tree (name) WHERE state = 'watched';

CREATE TABLE change (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tree       bigint NOT NULL REFERENCES tree,
    kind       text NOT NULL CHECK (kind IN ('first', 'advance', 'rebase')),
    old_commit text NOT NULL CHECK (old_commit ~ '^[0-9a-f]{40}$'),     -- base of the comparison with the new tip: old tip, or merge base after a rebase
    new_commit text NOT NULL CHECK (new_commit ~ '^[0-9a-f]{40}$'),
    seen_at    timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT change_once UNIQUE (tree, old_commit, new_commit)
);

-- A branch that is rebuilt every day is a list of patches (docs/incidents.md, "Rebased branches").
CREATE TABLE patch (                                                    -- a commit on the first-parent line of a watched branch, now or earlier
    commit   text PRIMARY KEY CHECK (commit ~ '^[0-9a-f]{40}$'),
    parent   text NOT NULL CHECK (parent ~ '^([0-9a-f]{40})?$'),        -- its first parent; '' for a root
    patch_id text NOT NULL,                                             -- git patch-id --verbatim; of a merge 'merge:' and the merged commits; '': no change
    subject  text NOT NULL,
    author   text NOT NULL
);
CREATE INDEX patch_by_id ON patch (patch_id) WHERE patch_id <> '';

CREATE TABLE branch_patch (                                             -- contents of a branch since its last move, replaced at the next one
    tree     bigint NOT NULL REFERENCES tree,
    position integer NOT NULL CHECK (position > 0),                     -- oldest first; dropped ones at the end
    commit   text NOT NULL REFERENCES patch,
    state    text NOT NULL CHECK (state IN ('same', 'moved', 'changed', 'new', 'below', 'dropped')),
    was      text REFERENCES patch,                                     -- the same patch, or its previous version, at the previous tip
    PRIMARY KEY (tree, position),
    CONSTRAINT branch_patch_was_there CHECK ((state IN ('same', 'moved', 'changed')) = (was IS NOT NULL))
);

-- ---------------------------------------------------------------------------
-- Kernels, and the testboxes that boot them.

CREATE TABLE variant (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tree      bigint NOT NULL REFERENCES tree,
    commit    text NOT NULL CHECK (commit ~ '^[0-9a-f]{40}$'),
    subject   text NOT NULL,
    author    text NOT NULL DEFAULT '',
    tree_hash text NOT NULL CHECK (tree_hash ~ '^[0-9a-f]{40}$'),       -- git tree object: equal contents mean equal kernels
    kconfig   text NOT NULL,
    compiler  text NOT NULL,
    layout    integer NOT NULL DEFAULT 0 CHECK (layout >= 0),           -- 0: the linker's own; others: swingbot_jobs/code_layout.py
    trust     text NOT NULL DEFAULT 'trusted' CHECK (trust IN ('trusted', 'untrusted')),
    voucher   bigint CHECK (voucher IS NULL OR trust = 'trusted'),      -- the token that vouches for it while it is valid; NULL: its tree or an operator
    build_key text NOT NULL CHECK (build_key ~ '^[0-9a-f]{64}$'),
    origin    text NOT NULL CHECK (origin IN ('branch', 'request', 'patch')),
    patches   jsonb NOT NULL DEFAULT '[]',                              -- of a commit made here or sent: git patch-id --verbatim of these commits, oldest first, '' where there is none
    posted    text NOT NULL DEFAULT '',                                 -- Message-ID of its mail, with <>, from the trailers of the commit; '': unknown
    -- The same commit at two levels of trust is two variants with two build keys, so their results never mix.
    CONSTRAINT variant_once_a_level UNIQUE (tree, commit, kconfig, compiler, layout, trust)
);
CREATE INDEX variant_by_build_key ON variant (build_key);
CREATE INDEX variant_vouched ON variant (id) WHERE voucher IS NOT NULL;
CREATE INDEX variant_by_mail ON variant (posted) WHERE posted <> '';
CREATE INDEX variant_by_patch ON variant ((patches ->> -1)) WHERE patches <> '[]';
CREATE INDEX variant_by_commit ON variant (commit);

CREATE TABLE build_forecast (                                           -- expected duration of a build when it was requested (core/plan/costs.py)
    build_key   text PRIMARY KEY CHECK (build_key ~ '^[0-9a-f]{64}$'),
    seconds     double precision NOT NULL CHECK (seconds >= 0),
    foreseen_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE worker_compiler (                                          -- announced by a build worker, replaced at each of its logins
    worker       text NOT NULL,
    name         text NOT NULL,                                         -- gcc, gcc-12, clang-19
    version      text NOT NULL,                                         -- first line of NAME --version
    problem      text,                                                  -- why it cannot build kernels; NULL: it can
    announced_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (worker, name)
);

CREATE TABLE testbox (
    name       text PRIMARY KEY CHECK (name ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$'),
    tbox_group text NOT NULL,
    facts      jsonb NOT NULL,                                          -- workers/testboxes/<name>.yaml as validated
    state      text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'drained', 'quarantined', 'gone')),
    reason     text,
    updated_at timestamptz NOT NULL DEFAULT now()
);

-- A set of unit jobs, resolved for one testbox, by content: the work of one boot.
CREATE TABLE boot_spec (
    sha256    text PRIMARY KEY CHECK (sha256 ~ '^[0-9a-f]{64}$'),
    unit_jobs jsonb NOT NULL                                            -- list of unit jobs, swingbot_jobs.unit_job.UnitJob.to_json()
);

-- ---------------------------------------------------------------------------
-- Orders, their attempts, and the dispatches of these to Buildbot.

CREATE TABLE orders (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind       text NOT NULL CHECK (kind IN ('build', 'boot')),
    key        text NOT NULL,                                           -- build:<build_key> | swingbot.core.model.records.BootKey
    build_key  text NOT NULL CHECK (build_key ~ '^[0-9a-f]{64}$'),
    variant    bigint NOT NULL REFERENCES variant,                      -- the variant of the first request; others share the order by its key
    testbox    text REFERENCES testbox,
    spec       text REFERENCES boot_spec,
    series     text,                                                    -- '' shares boots with everyone; c12/b3: boots of that comparison or bisection only
    purpose    text NOT NULL DEFAULT 'search' CONSTRAINT order_purpose_is_a_word CHECK (purpose ~ '^[a-z]+(-[0-9]+)?$'),   -- core/plan/boot_numbers.py
    k          integer CHECK (k >= 0),                                  -- the k-th boot of its kernel in this series and purpose; picks the perturbation
    state      text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'ready', 'running', 'done', 'failed', 'cancelled')),
    reason     text,                                                    -- why it failed or was cancelled, in one sentence
    priority   integer NOT NULL DEFAULT 0,
    budget     integer NOT NULL DEFAULT 3 CHECK (budget > 0),           -- maximum number of attempts
    created_at timestamptz NOT NULL DEFAULT now(),
    ended_at   timestamptz,
    CONSTRAINT order_once UNIQUE (key),
    CONSTRAINT boot_order_is_complete CHECK ((kind = 'boot') = (testbox IS NOT NULL AND spec IS NOT NULL AND series IS NOT NULL AND k IS NOT NULL)),
    CONSTRAINT order_end_is_dated CHECK ((state IN ('done', 'failed', 'cancelled')) = (ended_at IS NOT NULL))
);
CREATE INDEX orders_open ON orders (state, priority DESC, id) WHERE state IN ('waiting', 'ready', 'running');
CREATE INDEX orders_by_build_key ON orders (build_key);                   -- those of a private kernel
CREATE INDEX orders_by_testbox ON orders (testbox, ended_at) WHERE testbox IS NOT NULL;   -- where the time of a testbox went

CREATE TABLE attempt (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_id    bigint NOT NULL REFERENCES orders,
    number      integer NOT NULL CHECK (number > 0),
    state       text NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'ended', 'dead')),
    outcome     jsonb,                                                  -- outcome.json as received, validated against jobs/schema
    late        jsonb,                                                  -- received after the attempt was declared dead: stored, never counted
    reason      text,                                                   -- why it is dead
    ingested_at timestamptz,
    created_at  timestamptz NOT NULL DEFAULT now(),
    ended_at    timestamptz,
    CONSTRAINT attempt_once UNIQUE (order_id, number),
    CONSTRAINT attempt_end_is_dated CHECK ((state = 'running') = (ended_at IS NULL)),
    CONSTRAINT attempt_ends_with_outcome CHECK ((state = 'ended') = (outcome IS NOT NULL))
);
CREATE UNIQUE INDEX attempt_one_running ON attempt (order_id) WHERE state = 'running';

CREATE TABLE attempt_file (                                             -- uploaded with the attempt's token; counts against the attempt's cap
    attempt bigint NOT NULL REFERENCES attempt ON DELETE CASCADE,
    sha256  text NOT NULL CHECK (sha256 ~ '^[0-9a-f]{64}$'),
    bytes   bigint NOT NULL CHECK (bytes >= 0),
    at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (attempt, sha256)
);

CREATE TABLE dispatch (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    attempt     bigint NOT NULL REFERENCES attempt,
    number      integer NOT NULL CHECK (number > 0),
    builder     text NOT NULL,                                          -- 'kernel' or 'boot-<testbox>'
    external_id text NOT NULL,                                          -- Buildbot's external_idstring: o12/a1/d1
    state       text NOT NULL DEFAULT 'wanted' CHECK (state IN ('wanted', 'placed', 'over')),
    bb_buildset bigint,
    bb_request  bigint,
    bb_builder  bigint,
    bb_number   bigint,
    result      text,                                                   -- Buildbot's result: success, failure, retry, cancelled, exception
    created_at  timestamptz NOT NULL DEFAULT now(),
    placed_at   timestamptz,
    ended_at    timestamptz,
    CONSTRAINT dispatch_once UNIQUE (attempt, number),
    CONSTRAINT dispatch_external_once UNIQUE (external_id),
    CONSTRAINT dispatch_end_is_dated CHECK ((state = 'over') = (ended_at IS NOT NULL))
);
CREATE UNIQUE INDEX dispatch_one_open ON dispatch (attempt) WHERE state <> 'over';

-- ---------------------------------------------------------------------------
-- Testboxes at work.

-- One row while a testbox works on an attempt; the primary key makes a testbox run one boot at a time. An attempt on a cluster
-- has the cluster and all of its nodes: one row each, taken and released together. Its order names the cluster, so the
-- controller renews and loses that row.
CREATE TABLE lease (
    testbox  text PRIMARY KEY REFERENCES testbox,
    attempt  bigint NOT NULL REFERENCES attempt,
    holder   text,                                                      -- host of the controller that drives the testbox; NULL: none has started
    until    timestamptz,                                               -- a controller without a sign of life until then is lost
    fence    bigint CHECK (fence > 0),                                  -- greater than that of every earlier holder, on every testbox
    taken_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT lease_holder_is_dated CHECK ((holder IS NULL) = (until IS NULL))
);
CREATE INDEX lease_by_attempt ON lease (attempt);

-- It begins at the time of this migration, in seconds, so that a testbox which has served another database (one that was set up
-- anew) has seen smaller ones only.
DO $$
BEGIN
    EXECUTE 'CREATE SEQUENCE lease_fence_seq START ' || extract(epoch FROM clock_timestamp())::bigint || ' OWNED BY lease.fence';
END $$;

CREATE TABLE testbox_now (                                              -- swingbot/core/model/testbox_state.py; testbox.state says whether it may work
    testbox         text PRIMARY KEY REFERENCES testbox,
    state           text NOT NULL DEFAULT 'idle' CHECK (state IN ('idle', 'leased', 'booting', 'running', 'returning', 'lost', 'quarantined')),
    since           timestamptz NOT NULL DEFAULT clock_timestamp(),
    why             text NOT NULL DEFAULT '',
    attempt         bigint REFERENCES attempt,                          -- current attempt, or the attempt during which it was lost
    failures        integer NOT NULL DEFAULT 0 CHECK (failures >= 0),   -- attempts in a row that failed because of it or its controller
    down            integer NOT NULL DEFAULT 0 CHECK (down >= 0),       -- boots in a row that did not come up
    hardware        jsonb,                                              -- {"model", "cpu_model", "nr_cpu", "memory_kb", "microcode"}, as far as reported
    screening_boots integer NOT NULL DEFAULT 0 CHECK (screening_boots >= 0),  -- anchor boots required; 0: no screening
    screening_since timestamptz NOT NULL DEFAULT clock_timestamp(),     -- anchor boots count from then on
    screened_at     timestamptz                                         -- its noise is known; NULL: its results do not count yet, if it needs screening
);

CREATE TABLE testbox_event (                                            -- every change of state
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    testbox text NOT NULL REFERENCES testbox,
    was     text NOT NULL,
    state   text NOT NULL,
    why     text NOT NULL,
    attempt bigint REFERENCES attempt,
    at      timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX testbox_event_by_testbox ON testbox_event (testbox, id);

-- Alerts to the operator by mail: one mail at the start, one at the end.
CREATE TABLE alert (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind     text NOT NULL CHECK (kind IN ('lost', 'quarantined', 'moved', 'invalid', 'stuck', 'disk')),
    testbox  text REFERENCES testbox,                                   -- NULL: about the lab as a whole
    reason   text NOT NULL,
    began_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at timestamptz                                                -- NULL: ongoing
);
CREATE UNIQUE INDEX alert_once ON alert (kind, coalesce(testbox, '')) WHERE ended_at IS NULL;
CREATE INDEX alert_by_testbox ON alert (testbox, id);

-- ---------------------------------------------------------------------------
-- Results: builds, boots, runs, samples, and what is derived from them.

CREATE TABLE kernel_build (
    build_key        text PRIMARY KEY CHECK (build_key ~ '^[0-9a-f]{64}$'),
    status           text NOT NULL CHECK (status IN ('built', 'failed')),
    image_sha256     text CHECK (image_sha256 ~ '^[0-9a-f]{64}$'),      -- equal images are the same kernel, measured once
    compiler_version text NOT NULL,
    sizes            jsonb NOT NULL DEFAULT '{}',                       -- bytes of text, data, bss
    errors           text[] NOT NULL DEFAULT '{}',                      -- first error lines of a failed build
    files            jsonb NOT NULL DEFAULT '{}',                       -- {"bzImage": {"sha256", "size"}, "config", "System.map", "build.log", "objects.json"}
    seconds          double precision NOT NULL CHECK (seconds >= 0),
    cached           boolean NOT NULL DEFAULT false,                    -- taken from the worker's kernel cache, not built for this order
    attempt          bigint NOT NULL REFERENCES attempt,
    origin           text NOT NULL CHECK (origin IN ('measured', 'replayed', 'simulated')),
    built_at         timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT built_has_image CHECK ((status = 'built') = (image_sha256 IS NOT NULL))
);
CREATE INDEX kernel_build_by_image ON kernel_build (image_sha256);

CREATE TABLE boot (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    attempt      bigint NOT NULL UNIQUE REFERENCES attempt,             -- ingest happens once per attempt
    order_id     bigint NOT NULL UNIQUE REFERENCES orders,              -- only one attempt of an order counts
    testbox      text NOT NULL REFERENCES testbox,
    build_key    text NOT NULL REFERENCES kernel_build,
    image_sha256 text NOT NULL CHECK (image_sha256 ~ '^[0-9a-f]{64}$'),
    spec         text NOT NULL REFERENCES boot_spec,
    series       text NOT NULL,
    purpose      text NOT NULL DEFAULT 'search' CONSTRAINT boot_purpose_is_a_word CHECK (purpose ~ '^[a-z]+(-[0-9]+)?$'),
    k            integer NOT NULL CHECK (k >= 0),
    outcome      text NOT NULL CHECK (outcome IN ('up', 'panicked', 'oopsed', 'hung')),
    reason       text,                                                  -- first line of the panic, or the event that did not arrive
    facts        jsonb NOT NULL DEFAULT '{}',
    files        jsonb NOT NULL DEFAULT '{}',                           -- {"console.log": {"sha256", "size"}, "results.tar", "qemu.log"}
    seconds      double precision NOT NULL CHECK (seconds >= 0),
    origin       text NOT NULL CHECK (origin IN ('measured', 'replayed', 'simulated')),
    booted_at    timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX boot_once_a_purpose ON boot (image_sha256, testbox, spec, series, purpose, k);
CREATE INDEX boot_by_testbox ON boot (testbox, id);

CREATE TABLE result_root (                                              -- the name that LKP would give to the results
    id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL                                                  -- result/<testcase>/<path params>/<tbox_group>/<rootfs>/<kconfig>/<compiler>/<commit>
        CONSTRAINT result_root_is_a_path CHECK (name ~ '^result(/[-a-zA-Z0-9+=:.%_]{1,255}){7}$' AND name !~ '/\.{1,2}(/|$)'),
    CONSTRAINT result_root_once UNIQUE (name)
);

CREATE TABLE run (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    boot        bigint NOT NULL REFERENCES boot,
    unit_job    text NOT NULL,
    number      integer NOT NULL CHECK (number >= 0),
    status      text NOT NULL CHECK (status IN ('ok', 'failed', 'missing', 'invalid', 'warmup')),   -- invalid: the machine does not meet the job's demands
    reason      text,
    seconds     double precision,
    result_root bigint REFERENCES result_root,
    root_run    integer,                                                -- <run>: counts from 0 within the result root
    parser      text CONSTRAINT run_parser_is_a_hash CHECK (parser ~ '^[0-9a-f]{64}$'),   -- of the code that parsed its samples; NULL: nothing to parse
    CONSTRAINT run_once UNIQUE (boot, unit_job, number),
    CONSTRAINT run_says_why CHECK ((status = 'ok') OR (reason IS NOT NULL)),
    CONSTRAINT run_has_one_place UNIQUE (result_root, root_run),
    CONSTRAINT run_place_is_whole CHECK ((result_root IS NULL) = (root_run IS NULL) AND (root_run IS NULL OR root_run >= 0))
);

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

CREATE TABLE measured_metric (                                          -- one row for each metric that a testbox ever measured
    id       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    testbox  text NOT NULL REFERENCES testbox,
    unit_job text NOT NULL,
    metric   text NOT NULL,
    trusted  boolean NOT NULL DEFAULT true,                             -- a trusted kernel reported it; others go with their boots (docs/limits.md)
    CONSTRAINT measured_metric_once UNIQUE (testbox, unit_job, metric)
);
CREATE INDEX measured_metric_by_name ON measured_metric (metric, unit_job);

-- A sample names its metric by a number: 83 bytes with its key instead of 147 with the name in both.
CREATE TABLE sample (
    run      bigint NOT NULL REFERENCES run,
    measured integer NOT NULL,                                          -- of its run's testbox and unit job; exists, because its boot_mean refers to it
    seq      integer NOT NULL DEFAULT 0 CHECK (seq >= 0),
    value    double precision NOT NULL CHECK (value = value AND abs(value) < 1e100),   -- no NaN, no infinity: missing is a missing row; variances of larger ones overflow
    PRIMARY KEY (run, measured, seq)
);

-- The mean of each metric in each boot, so that panels and lists read means instead of all samples.
CREATE TABLE boot_mean (
    boot     bigint NOT NULL,                                           -- exists, because the runs of its samples refer to it
    mean     double precision NOT NULL,                                 -- of all samples of the boot
    measured integer NOT NULL REFERENCES measured_metric,
    runs     integer NOT NULL,
    samples  integer NOT NULL,
    PRIMARY KEY (measured, boot) INCLUDE (mean, runs, samples),         -- a metric over many boots without visiting the table
    CONSTRAINT boot_mean_has_samples CHECK (runs > 0 AND samples >= runs)
);

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

CREATE TABLE noise_record (                                             -- derived from boots; stored to show what a bisection started from
    testbox  text NOT NULL REFERENCES testbox,
    unit_job text NOT NULL,
    metric   text NOT NULL,
    detail   jsonb NOT NULL,                                            -- core/model/noise.py: NoiseRecord
    through  bigint NOT NULL REFERENCES boot,                           -- the latest boot included
    at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (testbox, unit_job, metric)
);

-- ---------------------------------------------------------------------------
-- Comparisons: kernels measured against each other, as a table with a row for each arm.

CREATE TABLE comparison (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- attribute: parent against culprit, for the report; prove: fresh pairs for one swing; anchor: one kernel with itself; gate: two
    -- kernels that a gate compares; still: the copy of a known culprit in a rebased branch against its parent
    kind         text NOT NULL CHECK (kind IN ('asked', 'experiment', 'watch', 'attribute', 'prove', 'anchor', 'gate', 'still')),
    tree         bigint NOT NULL REFERENCES tree,
    change       bigint REFERENCES change,                              -- one comparison for each kernel configuration of its testboxes
    purpose      text NOT NULL DEFAULT 'search'                         -- of its boots, which have the numbers first_k .. first_k + boots - 1
        CONSTRAINT comparison_purpose_is_a_word CHECK (purpose ~ '^[a-z]+(-[0-9]+)?$'),
    first_k      integer NOT NULL DEFAULT 0 CHECK (first_k >= 0),
    boots        integer NOT NULL CHECK (boots BETWEEN 1 AND 1000),     -- of each arm
    against      text[] NOT NULL DEFAULT '{first}'                      -- references of the rows; the first one is that of the table
        CHECK (cardinality(against) >= 1),                              -- above, first, base, pair, or names of rows
    columns      text[] NOT NULL DEFAULT '{}',                          -- additional columns of a table: locks, size, metrics by name
    min_effect_pct double precision CHECK (min_effect_pct > 0),         -- as its request states it; NULL: that of the tree
    looks        integer NOT NULL DEFAULT 1 CHECK (looks >= 1),         -- number of looks: one more with each extension
    looks_stated integer NOT NULL DEFAULT 1 CHECK (looks_stated >= 1),  -- looks that its request stated (docs/statistics.md, "Judging a table again")
    unjudged     integer NOT NULL DEFAULT 0 CHECK (unjudged >= 0),      -- counters without a row: the evidence of others was stronger
    status       text NOT NULL DEFAULT 'waiting' CHECK (status IN ('waiting', 'running', 'done', 'failed', 'cancelled')),
    reason       text,
    answer       jsonb,                                                 -- what a night of anchor boots says of its testbox (core/plan/long_screening.py)
    request_key  text UNIQUE,                                           -- makes repeated requests idempotent
    private_to   text[],                                                -- who may read it, with operators, until it is published; NULL: everybody
    created_at   timestamptz NOT NULL DEFAULT now(),
    ended_at     timestamptz
);
CREATE INDEX comparison_private ON comparison (id) WHERE private_to IS NOT NULL;

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

CREATE TABLE comparison_arm_spec (                                      -- spec of an arm whose settings make it differ from the part's spec
    comparison bigint NOT NULL,
    arm        integer NOT NULL,
    spec       text NOT NULL REFERENCES boot_spec,                      -- of the part
    own        text NOT NULL REFERENCES boot_spec,
    PRIMARY KEY (comparison, arm, spec),
    FOREIGN KEY (comparison, arm) REFERENCES comparison_arm
);

CREATE TABLE comparison_part (                                          -- one testbox and its jobs
    comparison bigint NOT NULL REFERENCES comparison,
    testbox    text NOT NULL REFERENCES testbox,
    spec       text NOT NULL REFERENCES boot_spec,
    PRIMARY KEY (comparison, testbox, spec)
);

CREATE TABLE comparison_row (                                           -- one metric of one arm against another
    comparison bigint NOT NULL REFERENCES comparison,
    testbox    text NOT NULL REFERENCES testbox,
    spec       text NOT NULL REFERENCES boot_spec,
    unit_job   text NOT NULL,
    metric     text NOT NULL,
    against    text NOT NULL DEFAULT 'first',
    arm        integer NOT NULL DEFAULT 1,
    reference  integer NOT NULL DEFAULT 0,
    verdict    text NOT NULL CHECK (verdict IN ('worse', 'better', 'changed', 'same', 'unclear', 'invalid')),
    change_pct double precision,
    detail     jsonb NOT NULL,                                          -- the row as in docs/json.md
    PRIMARY KEY (comparison, testbox, unit_job, metric, against, arm)
);

CREATE TABLE tree_history (                                             -- of the tips of a watched branch, replaced with each (docs/statistics.md, "Histories")
    tree     bigint NOT NULL REFERENCES tree,
    testbox  text NOT NULL,
    unit_job text NOT NULL,
    metric   text NOT NULL,
    upto     bigint NOT NULL REFERENCES comparison,                     -- its last tip
    findings jsonb NOT NULL,                                            -- core/stats/findings.py, and the tips that it names by number
    PRIMARY KEY (tree, testbox, unit_job, metric)
);

-- ---------------------------------------------------------------------------
-- Bisections, and the journal of their steps.

CREATE TABLE bisection (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tree        bigint NOT NULL REFERENCES tree,
    origin      text NOT NULL CHECK (origin IN ('asked', 'watch')),
    good        text NOT NULL CHECK (good ~ '^[0-9a-f]{40}$'),
    bad         text NOT NULL CHECK (bad ~ '^[0-9a-f]{40}$'),
    parent      bigint REFERENCES bisection,                            -- its culprit is the merge of the branch that this bisection searches
    merged      text CHECK (merged ~ '^[0-9a-f]{40}$'),
    testbox     text NOT NULL REFERENCES testbox,
    spec        text NOT NULL REFERENCES boot_spec,
    series      text NOT NULL,
    unit_job    text NOT NULL,
    metric      text NOT NULL,
    terms       jsonb NOT NULL DEFAULT '{}',                            -- core/model/bisection.py: BisectionTerms
    status      text NOT NULL DEFAULT 'running'                         -- creep: the level moves with every commit (docs/bisecting.md)
        CHECK (status IN ('running', 'culprit', 'credible_set', 'several', 'creep', 'not_reproduced', 'inconclusive', 'failed', 'cancelled')),
    conclusion  jsonb,                                                  -- the bisection as in docs/json.md, once it has ended
    belief      jsonb NOT NULL DEFAULT '{}',                            -- for pages only; recomputed from observations at each step
    reason      text,
    request_key text UNIQUE,
    created_at  timestamptz NOT NULL DEFAULT now(),
    ended_at    timestamptz,
    CONSTRAINT bisection_end_is_dated CHECK ((status = 'running') = (ended_at IS NULL)),
    CONSTRAINT bisection_has_range CHECK (good <> bad),
    CONSTRAINT bisection_of_a_merge CHECK ((parent IS NULL) = (merged IS NULL))
);
CREATE INDEX bisection_by_parent ON bisection (parent) WHERE parent IS NOT NULL;

CREATE TABLE bisection_point (                                          -- 0 is good, the last is bad; first-parent order
    bisection bigint NOT NULL REFERENCES bisection,
    idx       integer NOT NULL CHECK (idx >= 0),
    variant   bigint NOT NULL REFERENCES variant,
    skipped   text,                                                     -- skipped by a person, with the reason
    weight    double precision NOT NULL DEFAULT 1 CHECK (weight >= 0),
    hint      double precision NOT NULL DEFAULT 1 CHECK (hint > 0),
    PRIMARY KEY (bisection, idx)
);

CREATE TABLE bisection_want (                                           -- requests of each step: the intent, recorded before any order
    bisection     bigint NOT NULL,
    idx           integer NOT NULL,
    k             integer NOT NULL CHECK (k >= 0),
    phase         text NOT NULL CHECK (phase IN ('history', 'ends', 'search', 'confirm')),
    layout        integer NOT NULL DEFAULT 0 CHECK (layout >= 0),       -- code layout of the commit, as in variant
    testbox_index integer NOT NULL DEFAULT 0 CHECK (testbox_index >= 0), -- in the group, in the order of the bisection's terms
    asked_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (bisection, idx, k),
    FOREIGN KEY (bisection, idx) REFERENCES bisection_point
);

CREATE TABLE observation (                                              -- an outcome used by a bisection
    bisection bigint NOT NULL,
    idx       integer NOT NULL,
    k         integer NOT NULL,
    boot      bigint REFERENCES boot,                                   -- NULL: there was no boot (the kernel did not build)
    "values"  double precision[] NOT NULL,                              -- one per run; empty: this boot has no value for the metric
    skip      text,                                                     -- unbuildable, panicked, hung, no result: an outcome, never a vote
    seen_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (bisection, idx, k),
    FOREIGN KEY (bisection, idx, k) REFERENCES bisection_want,
    CONSTRAINT observation_votes_or_says_why CHECK ((cardinality("values") = 0) = (skip IS NOT NULL))
);

CREATE TABLE bisection_step (                                           -- input and decision of each step, for review and replay
    bisection bigint NOT NULL REFERENCES bisection,
    number    integer NOT NULL CHECK (number > 0),
    engine    text NOT NULL,                                            -- digest of the engine's sources: another engine may decide differently
    facts     json NOT NULL,                                            -- difference from the previous step; json, not jsonb, because its text is preserved
    digest    text NOT NULL CHECK (digest ~ '^[0-9a-f]{64}$'),          -- of the complete input of the step
    action    json NOT NULL,                                            -- the decision, with its reason
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (bisection, number)
);

CREATE TABLE bisection_steer (                                          -- input from people, in force from the next step on
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    bisection bigint NOT NULL REFERENCES bisection,
    act       text NOT NULL CHECK (act IN ('skip', 'unskip', 'hint', 'resume')),
    points    integer[] NOT NULL,                                       -- commits, by index
    factor    double precision CHECK (factor > 0),                      -- hint: factor on the prior weight
    boots     integer CHECK (boots > 0),                                -- resume: boots that may be used from then on
    why       text,
    who       text NOT NULL,
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT steer_hint_has_factor CHECK ((act = 'hint') = (factor IS NOT NULL)),
    CONSTRAINT steer_resume_has_boots CHECK ((act = 'resume') = (boots IS NOT NULL))
);
CREATE INDEX bisection_steer_by_bisection ON bisection_steer (bisection, id);

-- Comparisons and bisections that need an order; an order that is no longer needed is cancelled.
CREATE TABLE want (
    order_id   bigint NOT NULL REFERENCES orders,
    comparison bigint REFERENCES comparison,
    bisection  bigint REFERENCES bisection,
    CONSTRAINT want_has_one_asker CHECK (num_nonnulls(comparison, bisection) = 1),
    CONSTRAINT want_once UNIQUE NULLS NOT DISTINCT (order_id, comparison, bisection)
);
-- want_once begins with the order.
CREATE INDEX want_of_comparison ON want (comparison) WHERE comparison IS NOT NULL;
CREATE INDEX want_of_bisection ON want (bisection) WHERE bisection IS NOT NULL;

-- ---------------------------------------------------------------------------
-- Swings.

CREATE TABLE swing (                                                    -- a row of a comparison with two arms that moved by more than its noise
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    comparison bigint NOT NULL,
    testbox    text NOT NULL,
    unit_job   text NOT NULL,
    metric     text NOT NULL,
    against    text NOT NULL DEFAULT 'first' CHECK (against = 'first'),
    arm        integer NOT NULL DEFAULT 1 CHECK (arm = 1),
    direction  text NOT NULL CHECK (direction IN ('worse', 'better', 'changed')),
    change_pct double precision NOT NULL,
    -- The alarm came from the comparison, from the last tips, from an older anchor, from the spread of the last tips; expected: a commit
    -- in its range has a change marked as expected.
    source     text NOT NULL DEFAULT 'base' CHECK (source IN ('base', 'history', 'creep', 'spread', 'expected')),
    anchor     bigint REFERENCES variant,                               -- creep, spread: the older tip used as reference
    upto       bigint REFERENCES variant,                               -- last kernel of the range to search, if that is not the tip
    proof      bigint REFERENCES comparison,                            -- the pairs that were booted to confirm it
    evidence   jsonb NOT NULL DEFAULT '{}',                             -- {"answer", "bf", "pairs", "wanted", "reason"}
    state      text NOT NULL DEFAULT 'open'                             -- known: caused by known culprits that are still in the branch
        CHECK (state IN ('suspected', 'refuted', 'open', 'bisecting', 'explained', 'not_bisected', 'not_found', 'known')),
    bisection  bigint REFERENCES bisection,
    CONSTRAINT swing_once UNIQUE (comparison, testbox, unit_job, metric),
    CONSTRAINT swing_creep_has_anchor
        CHECK (CASE WHEN source IN ('creep', 'spread') THEN anchor IS NOT NULL WHEN source = 'expected' THEN true ELSE anchor IS NULL END),
    FOREIGN KEY (comparison, testbox, unit_job, metric, against, arm) REFERENCES comparison_row
);
CREATE INDEX swing_by_proof ON swing (proof) WHERE proof IS NOT NULL;

-- ---------------------------------------------------------------------------
-- Incidents: a culprit, where it was found, and how it was proven.

CREATE TABLE incident (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tree        bigint NOT NULL REFERENCES tree,
    culprit     bigint NOT NULL REFERENCES variant,
    status      text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'expected', 'fixed', 'invalid', 'duplicate', 'closed')),
    comparison  bigint REFERENCES comparison,                           -- parent against culprit, all jobs: the table of the report
    merged_into bigint REFERENCES incident,
    fixed_by    text CHECK (fixed_by ~ '^[0-9a-f]{40}$'),
    fix_check   bigint REFERENCES comparison,                           -- the culprit's parent against a tip with that commit; NULL: no such tip yet
    created_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT incident_once UNIQUE (tree, culprit),
    CONSTRAINT incident_is_merged_elsewhere CHECK (merged_into <> id),
    CONSTRAINT incident_duplicate_has_other CHECK (merged_into IS NULL OR status = 'duplicate')
);
CREATE INDEX incident_by_merged_into ON incident (merged_into) WHERE merged_into IS NOT NULL;

CREATE TABLE incident_bisection (
    incident  bigint NOT NULL REFERENCES incident,
    bisection bigint NOT NULL REFERENCES bisection,                     -- a bisection with several culprits belongs to several incidents
    PRIMARY KEY (incident, bisection)
);

CREATE TABLE incident_event (                                           -- events of an incident, with the person behind each
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    incident bigint NOT NULL REFERENCES incident,
    act      text NOT NULL CHECK (act IN ('opened', 'seen', 'merge', 'split', 'close', 'reopen', 'expected', 'fixed-by', 'invalid', 'checked', 'still', 'withdrawn', 'removed', 'prove')),
    who      text NOT NULL CHECK (who <> ''),                           -- user@host, a name from the pages, or swingbot itself
    reason   text,
    detail   jsonb NOT NULL DEFAULT '{}',                               -- ids and commits of the event
    at       timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX incident_event_by_incident ON incident_event (incident, id);

CREATE TABLE incident_gate (                                            -- a gate of proof before the culprit is reported; it measures by a comparison
    incident   bigint NOT NULL REFERENCES incident,
    gate       text NOT NULL CHECK (gate ~ '^[a-z][a-z_]{0,30}$'),      -- swingbot/core/proof/gates.py
    status     text NOT NULL CHECK (status IN ('running', 'pass', 'fail', 'not run')),
    reason     text NOT NULL DEFAULT '',                                -- half a sentence, with values
    comparison bigint REFERENCES comparison,
    tries      integer NOT NULL DEFAULT 1 CHECK (tries > 0),            -- number of requests
    foreseen   jsonb,                                                   -- {"builds", "boots", "seconds"}, estimated in advance; NULL: it needs none
    detail     jsonb NOT NULL DEFAULT '{}',                             -- values behind the reason
    asked_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    decided_at timestamptz,
    PRIMARY KEY (incident, gate),
    CONSTRAINT incident_gate_end_is_dated CHECK ((status = 'running') = (decided_at IS NULL)),
    CONSTRAINT incident_gate_says_why CHECK (status <> 'not run' OR reason <> '')
);
CREATE INDEX incident_gate_running ON incident_gate (incident) WHERE status = 'running';
CREATE INDEX incident_gate_by_comparison ON incident_gate (comparison) WHERE comparison IS NOT NULL;

-- ---------------------------------------------------------------------------
-- Reports, their mails, and what people decide about them.

CREATE TABLE report (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind        text NOT NULL CHECK (kind IN ('first', 'still', 'update', 'fixed', 'retraction', 'answer', 'digest', 'alert', 'result')),
    incident    bigint REFERENCES incident,
    week        date,                                                   -- Monday of the week of a digest
    alert       bigint REFERENCES alert,                                -- of the kind 'alert': revision 1 reports the start, 2 the end
    revision    integer NOT NULL DEFAULT 1 CHECK (revision > 0),
    state       text NOT NULL CHECK (state IN ('draft', 'held', 'queued', 'sending', 'sent', 'unknown', 'dropped')),
    reason      text,                                                   -- why it got its first state, or why it was last held
    withdrawn   text,                                                   -- why it was dropped because of its incident before it was sent; another may follow
    message_id  text NOT NULL UNIQUE,
    to_addrs    text[] NOT NULL,
    cc_addrs    text[] NOT NULL DEFAULT '{}',
    dry_run     boolean NOT NULL DEFAULT true,
    would_to    text[] NOT NULL DEFAULT '{}',                           -- recipients without the dry run
    would_cc    text[] NOT NULL DEFAULT '{}',
    lists       text[] NOT NULL DEFAULT '{}',                           -- addresses of to, cc, would_to and would_cc that are mailing lists
    left_out    jsonb NOT NULL DEFAULT '[]',                            -- [[address, reason], ...]
    commit_only text[] NOT NULL DEFAULT '{}',                           -- recipients whom the culprit's commit alone names, marked for the moderator
    restricted  text,                                                   -- why it goes to mail.to alone although there is no dry run
    subject     text NOT NULL,
    body        text NOT NULL,
    facts       jsonb,                                                  -- behind the text, so that its page need not parse the mail
    metric      text,                                                   -- with testbox and passed: the class for moderation
    testbox     text,
    passed      text[] NOT NULL DEFAULT '{}',                           -- proof gates that passed, sorted
    created_at  timestamptz NOT NULL DEFAULT now(),
    sent_at     timestamptz,
    CONSTRAINT report_once UNIQUE (incident, kind, revision),
    CONSTRAINT report_of_incident_or_week
        CHECK ((incident IS NULL) = (kind IN ('digest', 'alert', 'result')) AND (week IS NULL) = (kind <> 'digest') AND (alert IS NULL) = (kind <> 'alert')),
    CONSTRAINT report_withdrawn_is_dropped CHECK (withdrawn IS NULL OR state = 'dropped')
);
CREATE UNIQUE INDEX report_one_first ON report (incident) WHERE kind = 'first' AND state <> 'dropped';
CREATE UNIQUE INDEX digest_once ON report (week) WHERE week IS NOT NULL;
CREATE UNIQUE INDEX report_of_alert_once ON report (alert, revision) WHERE alert IS NOT NULL;
CREATE INDEX report_by_class ON report (metric, testbox, passed) WHERE metric IS NOT NULL;

CREATE TABLE outbox (                                                   -- one row per mail that may be sent; a report has at most one
    report   bigint PRIMARY KEY REFERENCES report,
    message  bytea NOT NULL,                                            -- the mail, byte for byte
    tries    integer NOT NULL DEFAULT 0,
    next_try timestamptz NOT NULL DEFAULT now(),
    error    text
);

-- Decisions of people. `counts`: the mail was never handed to a server, so the decision is about its text.
CREATE TABLE moderation (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    report bigint REFERENCES report,
    act    text NOT NULL CHECK (act IN ('hold', 'release', 'drop', 'readdress', 'stop', 'resume')),
    who    text NOT NULL CHECK (who <> ''),
    why    text,
    was    text,                                                        -- the report's previous state
    counts boolean NOT NULL DEFAULT false,
    at     timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT moderation_of_a_report CHECK ((report IS NULL) = (act IN ('stop', 'resume')))
);
CREATE INDEX moderation_of_report ON moderation (report, id);

CREATE TABLE mail_switch (                                              -- a single row: while it says stopped, no mail is sent
    one     boolean PRIMARY KEY DEFAULT true CHECK (one),
    stopped boolean NOT NULL DEFAULT false,
    who     text,
    why     text,
    at      timestamptz NOT NULL DEFAULT now()
);
INSERT INTO mail_switch DEFAULT VALUES;

-- A culprit as found by one bisection: the same commit by another metric, on another testbox or branch, or a rebased copy.
CREATE TABLE sighting (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    incident   bigint NOT NULL REFERENCES incident,
    bisection  bigint NOT NULL REFERENCES bisection,
    culprit    bigint NOT NULL REFERENCES variant,
    patch_id   text CHECK (patch_id ~ '^([0-9a-f]{40})?$'),             -- git patch-id --verbatim; '': none (merge, root, no change); NULL: not computed yet
    comparison bigint REFERENCES comparison,                            -- parent against culprit
    report     bigint REFERENCES report,                                -- the mail that reports it
    seen_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT sighting_once UNIQUE (bisection, culprit)
);
CREATE INDEX sighting_by_incident ON sighting (incident, id);
CREATE INDEX sighting_by_culprit ON sighting (culprit);
CREATE INDEX sighting_by_patch_id ON sighting (patch_id) WHERE patch_id <> '';

-- ---------------------------------------------------------------------------
-- Write access over the web: tokens by name and role, their sessions, and a log of their use.

CREATE TABLE access_token (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    who        text NOT NULL CHECK (who <> ''),
    role       text NOT NULL CHECK (role IN ('reader', 'submitter', 'moderator', 'operator')),
    digest     text UNIQUE CHECK (digest ~ '^[0-9a-f]{64}$'),           -- SHA-256 of the token; NULL: the operator's key, which is derived from a file
    trees      text[] CHECK (trees IS NULL OR (role = 'submitter' AND cardinality(trees) > 0)), -- of which it may request tables; NULL: of all
    groups     text[] CHECK (groups IS NULL OR (role = 'reader' AND cardinality(groups) > 0)), -- testbox groups that it may see; NULL: all
    levels     boolean NOT NULL DEFAULT true CHECK (levels OR groups IS NOT NULL), -- false: it sees changes in percent only
    mail       text CHECK (mail LIKE '%_@_%'),                          -- for results requested by mail
    vouches    boolean NOT NULL DEFAULT false CHECK (NOT vouches OR (role <> 'reader' AND groups IS NULL)), -- for the commits that it sends first: their kernels are trusted while it is valid
    note       text,
    made_by    text NOT NULL,
    made_at    timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,                                             -- NULL: never
    revoked_at timestamptz,
    revoked_by text,
    used_at    timestamptz                                              -- to the minute
);
CREATE UNIQUE INDEX access_token_one_key ON access_token ((true)) WHERE digest IS NULL;
-- The operator's key is the first token, and can be revoked like any other.
INSERT INTO access_token (who, role, note, made_by) VALUES ('operator', 'operator', 'the key that swingbot key prints', 'swingbot');

ALTER TABLE variant ADD FOREIGN KEY (voucher) REFERENCES access_token;

CREATE TABLE sent_commit (                                              -- of tokens that vouch: what the lab lacked until they sent it
    commit text PRIMARY KEY CHECK (commit ~ '^[0-9a-f]{40}$'),
    token  bigint NOT NULL REFERENCES access_token
);

CREATE TABLE web_session (
    digest  text PRIMARY KEY CHECK (digest ~ '^[0-9a-f]{64}$'),
    token   bigint NOT NULL REFERENCES access_token,
    made_at timestamptz NOT NULL DEFAULT now(),
    ends_at timestamptz NOT NULL
);

CREATE TABLE access_event (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    act    text NOT NULL CHECK (act IN ('create', 'revoke', 'sign in', 'refused', 'sign out', 'compare', 'vouch', 'forget')),
    who    text NOT NULL,
    token  bigint REFERENCES access_token,
    detail text,
    at     timestamptz NOT NULL DEFAULT now()
);

-- Requesters of comparisons and bisections over the web, with the estimated cost; a person's quota counts these.
CREATE TABLE asked (
    comparison      bigint REFERENCES comparison,
    bisection       bigint REFERENCES bisection,
    who             text NOT NULL,
    token           bigint NOT NULL REFERENCES access_token,
    testbox_seconds double precision NOT NULL CHECK (testbox_seconds >= 0), -- sum over all testboxes
    at              timestamptz NOT NULL DEFAULT now(),
    UNIQUE (comparison, who),
    UNIQUE (bisection, who),
    CONSTRAINT asked_for_one_thing CHECK (num_nonnulls(comparison, bisection) = 1)
);
CREATE INDEX asked_by ON asked (who, at);

-- Who gets a mail when a table or bisection is over.
CREATE TABLE result_mail (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    comparison bigint REFERENCES comparison,
    bisection  bigint REFERENCES bisection,
    token      bigint NOT NULL REFERENCES access_token,                 -- whose address gets it; of the operator's key: the operator's
    report     bigint UNIQUE REFERENCES report,                         -- the mail; NULL: not written yet
    UNIQUE (comparison, token),
    UNIQUE (bisection, token),
    CONSTRAINT result_of_one_thing CHECK (num_nonnulls(comparison, bisection) = 1)
);
CREATE INDEX result_mail_unwritten ON result_mail (id) WHERE report IS NULL;

-- Requests over the web with an Idempotency-Key that were carried out, for a day; status NULL: the answer was not kept.
CREATE TABLE kept_answer (
    token    bigint NOT NULL REFERENCES access_token,         -- of the request: tokens of one person may see different things
    key      text NOT NULL CHECK (length(key) BETWEEN 1 AND 100),
    digest   text NOT NULL CHECK (digest ~ '^[0-9a-f]{64}$'), -- of the request
    status   int,
    location text,
    body     text,
    at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (token, key),
    CONSTRAINT answer_is_whole CHECK ((status IS NULL) = (body IS NULL))
);
CREATE INDEX kept_answer_at ON kept_answer (at);

-- ---------------------------------------------------------------------------
-- Waking the loop, and whether it has seen every change: if not, or while something is open, more work may follow
-- (docs/decisions/0008-idle.md).

CREATE TABLE unseen (                                                   -- one row per transaction that changed a table with the trigger wake()
    -- Deleted by the round that began after the commit, once it has completed.
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY
);
INSERT INTO unseen DEFAULT VALUES;                                      -- no round has seen the rows above

-- Wakes the loop and the master's dispatcher, which also poll, and records a change to process. Per row: a statement without changes
-- wakes neither, nor does a row that is written without a change, or each round would make work for the next.
CREATE FUNCTION wake() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND OLD IS NOT DISTINCT FROM NEW THEN
        RETURN NULL;
    END IF;
    PERFORM pg_notify('swingbot', TG_TABLE_NAME);
    IF COALESCE(current_setting('swingbot.unseen', true), '') = '' THEN
        LOOP                                                            -- after a crash the sequence may return a number twice
            INSERT INTO swingbot.unseen DEFAULT VALUES ON CONFLICT DO NOTHING;
            EXIT WHEN FOUND;
        END LOOP;
        PERFORM set_config('swingbot.unseen', 'recorded', true);        -- until the end of the transaction
    END IF;
    RETURN NULL;
END $$;

-- The tables that a round depends on. Not those written only together with one of them (boot, kernel_build, comparison_row, ...),
-- nor those that matter only while a bisection, an order or a mail is open (bisection_want, observation, lease, outbox, ...).
CREATE TRIGGER tree_wakes AFTER INSERT ON tree FOR EACH ROW EXECUTE FUNCTION wake();
CREATE TRIGGER tree_move_wakes AFTER UPDATE ON tree FOR EACH ROW
    WHEN ((OLD.tip_commit, OLD.state) IS DISTINCT FROM (NEW.tip_commit, NEW.state)) EXECUTE FUNCTION wake();    -- a poll without news wakes neither
CREATE TRIGGER change_wakes AFTER INSERT ON change FOR EACH ROW EXECUTE FUNCTION wake();
CREATE TRIGGER testbox_wakes AFTER INSERT OR UPDATE ON testbox FOR EACH ROW EXECUTE FUNCTION wake();
CREATE TRIGGER testbox_now_wakes AFTER INSERT OR UPDATE ON testbox_now FOR EACH ROW EXECUTE FUNCTION wake();
CREATE TRIGGER orders_wakes AFTER INSERT OR UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION wake();
CREATE TRIGGER attempt_wakes AFTER INSERT OR UPDATE ON attempt FOR EACH ROW EXECUTE FUNCTION wake();
CREATE TRIGGER dispatch_wakes AFTER INSERT OR UPDATE ON dispatch FOR EACH ROW EXECUTE FUNCTION wake();
CREATE TRIGGER comparison_wakes AFTER INSERT OR UPDATE ON comparison FOR EACH ROW EXECUTE FUNCTION wake();
CREATE TRIGGER noise_record_wakes AFTER INSERT OR UPDATE ON noise_record FOR EACH ROW EXECUTE FUNCTION wake();
CREATE TRIGGER bisection_wakes AFTER INSERT OR UPDATE ON bisection FOR EACH ROW EXECUTE FUNCTION wake();
CREATE TRIGGER bisection_steer_wakes AFTER INSERT ON bisection_steer FOR EACH ROW EXECUTE FUNCTION wake();
CREATE TRIGGER swing_wakes AFTER INSERT OR UPDATE ON swing FOR EACH ROW EXECUTE FUNCTION wake();
CREATE TRIGGER incident_wakes AFTER INSERT OR UPDATE ON incident FOR EACH ROW EXECUTE FUNCTION wake();
CREATE TRIGGER incident_event_wakes AFTER INSERT ON incident_event FOR EACH ROW EXECUTE FUNCTION wake();
CREATE TRIGGER incident_gate_wakes AFTER INSERT OR UPDATE ON incident_gate FOR EACH ROW EXECUTE FUNCTION wake();
CREATE TRIGGER sighting_wakes AFTER INSERT OR UPDATE ON sighting FOR EACH ROW EXECUTE FUNCTION wake();
CREATE TRIGGER alert_wakes AFTER INSERT OR UPDATE ON alert FOR EACH ROW EXECUTE FUNCTION wake();
CREATE TRIGGER report_wakes AFTER INSERT OR UPDATE ON report FOR EACH ROW EXECUTE FUNCTION wake();
CREATE TRIGGER result_mail_wakes AFTER INSERT ON result_mail FOR EACH ROW EXECUTE FUNCTION wake();
CREATE TRIGGER mail_switch_wakes AFTER UPDATE ON mail_switch FOR EACH ROW EXECUTE FUNCTION wake();
