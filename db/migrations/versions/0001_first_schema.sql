-- The first schema: facts with constraints and named keys; nothing is derived from Buildbot's tables.
-- Ids shown to people have a letter (t12, v3, o7, c5, b2, i1, r4), added at the edge; tables have the number.

CREATE TABLE tree (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name        text NOT NULL CHECK (name ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$'),
    url         text NOT NULL,
    branch      text NOT NULL,
    base_commit text NOT NULL CHECK (base_commit ~ '^[0-9a-f]{40}$'),   -- commit that --base named when the tree was added
    tip_commit  text CHECK (tip_commit ~ '^[0-9a-f]{40}$'),             -- last tip that became a change; NULL before the first poll
    job_files   jsonb NOT NULL DEFAULT '[]',                            -- [{"name": "hackbench.yaml", "text": "..."}], as given at `tree add`
    testboxes   text[] NOT NULL DEFAULT '{}',
    paths       text[] NOT NULL DEFAULT '{}',                           -- globs; empty: every path matters
    kconfig     text NOT NULL DEFAULT 'vm-x86_64',
    compiler    text NOT NULL DEFAULT 'gcc',
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

CREATE TABLE variant (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tree      bigint NOT NULL REFERENCES tree,
    commit    text NOT NULL CHECK (commit ~ '^[0-9a-f]{40}$'),
    subject   text NOT NULL,
    author    text NOT NULL DEFAULT '',
    tree_hash text NOT NULL CHECK (tree_hash ~ '^[0-9a-f]{40}$'),       -- git tree object: equal contents mean equal kernels
    kconfig   text NOT NULL,
    compiler  text NOT NULL,
    layout    integer NOT NULL DEFAULT 0 CHECK (layout >= 0),
    build_key text NOT NULL CHECK (build_key ~ '^[0-9a-f]{64}$'),
    origin    text NOT NULL CHECK (origin IN ('branch', 'request', 'patch')),
    patches   jsonb NOT NULL DEFAULT '[]',
    CONSTRAINT variant_once UNIQUE (tree, commit, kconfig, compiler, layout)
);
CREATE INDEX variant_by_build_key ON variant (build_key);

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

CREATE TABLE orders (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind       text NOT NULL CHECK (kind IN ('build', 'boot')),
    key        text NOT NULL,                                           -- build:<build_key> | boot:<build_key>:<testbox>:<spec>:<series>:<k>
    build_key  text NOT NULL CHECK (build_key ~ '^[0-9a-f]{64}$'),
    variant    bigint NOT NULL REFERENCES variant,                      -- the variant of the first request; others share the order by its key
    testbox    text REFERENCES testbox,
    spec       text REFERENCES boot_spec,
    series     text,                                                    -- '' shares boots with everyone; c12/b3: boots of that comparison or bisection only
    k          integer CHECK (k >= 0),                                  -- the k-th boot of its kernel in this series; picks the perturbation
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

-- One row while a testbox works on an attempt; the primary key makes a testbox run one boot at a time.
CREATE TABLE lease (
    testbox  text PRIMARY KEY REFERENCES testbox,
    attempt  bigint NOT NULL UNIQUE REFERENCES attempt,
    taken_at timestamptz NOT NULL DEFAULT now()
);

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
    k            integer NOT NULL CHECK (k >= 0),
    outcome      text NOT NULL CHECK (outcome IN ('up', 'panicked', 'oopsed', 'hung', 'timed_out')),
    reason       text,                                                  -- first line of the panic, or the event that did not arrive
    facts        jsonb NOT NULL DEFAULT '{}',
    files        jsonb NOT NULL DEFAULT '{}',                           -- {"console.log": {"sha256", "size"}, "results.tar", "qemu.log"}
    seconds      double precision NOT NULL CHECK (seconds >= 0),
    origin       text NOT NULL CHECK (origin IN ('measured', 'replayed', 'simulated')),
    booted_at    timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX boot_once ON boot (image_sha256, testbox, spec, series, k);

CREATE TABLE run (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    boot     bigint NOT NULL REFERENCES boot,
    unit_job text NOT NULL,
    number   integer NOT NULL CHECK (number >= 0),
    status   text NOT NULL CHECK (status IN ('ok', 'failed', 'missing')),
    reason   text,
    seconds  double precision,
    CONSTRAINT run_once UNIQUE (boot, unit_job, number),
    CONSTRAINT run_says_why CHECK ((status = 'ok') OR (reason IS NOT NULL))
);

CREATE TABLE sample (
    run    bigint NOT NULL REFERENCES run,
    metric text NOT NULL,
    seq    integer NOT NULL DEFAULT 0 CHECK (seq >= 0),
    value  double precision NOT NULL CHECK (value = value AND abs(value) < 1e300),   -- no NaN, no infinity: missing is a missing row
    PRIMARY KEY (run, metric, seq)
);
CREATE INDEX sample_by_metric ON sample (metric);

CREATE TABLE comparison (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind         text NOT NULL CHECK (kind IN ('asked', 'watch', 'attribute')),  -- attribute: parent against culprit, for the report
    tree         bigint NOT NULL REFERENCES tree,
    change       bigint UNIQUE REFERENCES change,
    base         bigint NOT NULL REFERENCES variant,
    head         bigint NOT NULL REFERENCES variant,
    first_k      integer NOT NULL DEFAULT 0 CHECK (first_k >= 0),
    boots        integer NOT NULL CHECK (boots BETWEEN 1 AND 1000),     -- per side
    status       text NOT NULL DEFAULT 'waiting' CHECK (status IN ('waiting', 'running', 'done', 'failed', 'cancelled')),
    reason       text,
    request_key  text UNIQUE,                                           -- makes repeated requests idempotent
    created_at   timestamptz NOT NULL DEFAULT now(),
    ended_at     timestamptz
);
CREATE TABLE comparison_part (                                          -- one testbox and its jobs
    comparison bigint NOT NULL REFERENCES comparison,
    testbox    text NOT NULL REFERENCES testbox,
    spec       text NOT NULL REFERENCES boot_spec,
    PRIMARY KEY (comparison, testbox, spec)
);
CREATE TABLE comparison_row (
    comparison  bigint NOT NULL REFERENCES comparison,
    testbox     text NOT NULL REFERENCES testbox,
    spec        text NOT NULL REFERENCES boot_spec,
    unit_job    text NOT NULL,
    metric      text NOT NULL,
    verdict     text NOT NULL CHECK (verdict IN ('worse', 'better', 'changed', 'same', 'unclear', 'invalid')),
    change_pct  double precision,
    detail      jsonb NOT NULL,                                         -- the row as in docs/json.md
    PRIMARY KEY (comparison, testbox, unit_job, metric)
);

CREATE TABLE bisection (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tree        bigint NOT NULL REFERENCES tree,
    origin      text NOT NULL CHECK (origin IN ('asked', 'watch')),
    good        text NOT NULL CHECK (good ~ '^[0-9a-f]{40}$'),
    bad         text NOT NULL CHECK (bad ~ '^[0-9a-f]{40}$'),
    testbox     text NOT NULL REFERENCES testbox,
    spec        text NOT NULL REFERENCES boot_spec,
    series      text NOT NULL,
    unit_job    text NOT NULL,
    metric      text NOT NULL,
    policy      jsonb NOT NULL DEFAULT '{}',
    status      text NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'culprit', 'credible_set', 'several', 'not_reproduced', 'inconclusive', 'failed', 'cancelled')),
    conclusion  jsonb,                                                  -- the bisection as in docs/json.md, once it has ended
    belief      jsonb NOT NULL DEFAULT '{}',                            -- for pages only; recomputed from observations at each step
    reason      text,
    request_key text UNIQUE,
    created_at  timestamptz NOT NULL DEFAULT now(),
    ended_at    timestamptz,
    CONSTRAINT bisection_end_is_dated CHECK ((status = 'running') = (ended_at IS NULL)),
    CONSTRAINT bisection_has_range CHECK (good <> bad)
);
CREATE TABLE bisection_point (                                          -- 0 is good, the last is bad; first-parent order
    bisection bigint NOT NULL REFERENCES bisection,
    idx       integer NOT NULL CHECK (idx >= 0),
    variant   bigint NOT NULL REFERENCES variant,
    skipped   text,                                                     -- skipped by a person, with the reason
    weight    double precision NOT NULL DEFAULT 1 CHECK (weight >= 0),
    PRIMARY KEY (bisection, idx)
);
CREATE TABLE bisection_want (                                           -- requests of each step: the intent, recorded before any order
    bisection bigint NOT NULL,
    idx       integer NOT NULL,
    k         integer NOT NULL CHECK (k >= 0),
    phase     text NOT NULL CHECK (phase IN ('ends', 'search', 'confirm')),
    asked_at  timestamptz NOT NULL DEFAULT now(),
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

CREATE TABLE swing (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    comparison  bigint NOT NULL,
    testbox     text NOT NULL,
    unit_job    text NOT NULL,
    metric      text NOT NULL,
    direction   text NOT NULL CHECK (direction IN ('worse', 'better', 'changed')),
    change_pct  double precision NOT NULL,
    state       text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'bisecting', 'explained', 'noted', 'not_found')),
    bisection   bigint REFERENCES bisection,
    CONSTRAINT swing_once UNIQUE (comparison, testbox, unit_job, metric),
    FOREIGN KEY (comparison, testbox, unit_job, metric) REFERENCES comparison_row
);

CREATE TABLE incident (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tree       bigint NOT NULL REFERENCES tree,
    culprit    bigint NOT NULL REFERENCES variant,
    status     text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'expected', 'fixed', 'invalid', 'duplicate')),
    comparison bigint REFERENCES comparison,                            -- parent against culprit, all jobs: the table of the report
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT incident_once UNIQUE (tree, culprit)
);
CREATE TABLE incident_bisection (
    incident  bigint NOT NULL REFERENCES incident,
    bisection bigint NOT NULL REFERENCES bisection,                     -- a bisection with several culprits belongs to several incidents
    PRIMARY KEY (incident, bisection)
);

CREATE TABLE report (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    incident   bigint NOT NULL REFERENCES incident,
    kind       text NOT NULL CHECK (kind IN ('first', 'update', 'fixed', 'retraction', 'answer')),
    revision   integer NOT NULL DEFAULT 1 CHECK (revision > 0),
    state      text NOT NULL CHECK (state IN ('draft', 'held', 'queued', 'sending', 'sent', 'unknown', 'dropped')),
    message_id text NOT NULL UNIQUE,
    to_addrs   text[] NOT NULL,
    cc_addrs   text[] NOT NULL DEFAULT '{}',
    subject    text NOT NULL,
    body       text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    sent_at    timestamptz,
    CONSTRAINT report_once UNIQUE (incident, kind, revision)
);
CREATE TABLE outbox (                                                   -- one row per mail that may be sent; a report has at most one
    report    bigint PRIMARY KEY REFERENCES report,
    message   bytea NOT NULL,                                           -- the mail, byte for byte
    tries     integer NOT NULL DEFAULT 0,
    next_try  timestamptz NOT NULL DEFAULT now(),
    error     text
);

-- Requests and bisections that need an order; an order that is no longer needed is cancelled.
CREATE TABLE want (
    order_id   bigint NOT NULL REFERENCES orders,
    comparison bigint REFERENCES comparison,
    bisection  bigint REFERENCES bisection,
    CONSTRAINT want_has_one_asker CHECK (num_nonnulls(comparison, bisection) = 1),
    CONSTRAINT want_once UNIQUE NULLS NOT DISTINCT (order_id, comparison, bisection)
);

-- Wake the loop and the master's dispatcher; both also poll. Per row: a statement without changes wakes neither.
CREATE FUNCTION wake() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('swingbot', TG_TABLE_NAME);
    RETURN NULL;
END $$;
CREATE TRIGGER attempt_wakes AFTER INSERT OR UPDATE ON attempt FOR EACH ROW EXECUTE FUNCTION wake();
CREATE TRIGGER dispatch_wakes AFTER INSERT OR UPDATE ON dispatch FOR EACH ROW EXECUTE FUNCTION wake();
CREATE TRIGGER comparison_wakes AFTER INSERT OR UPDATE ON comparison FOR EACH ROW EXECUTE FUNCTION wake();
CREATE TRIGGER bisection_wakes AFTER INSERT OR UPDATE ON bisection FOR EACH ROW EXECUTE FUNCTION wake();
CREATE TRIGGER report_wakes AFTER INSERT OR UPDATE ON report FOR EACH ROW EXECUTE FUNCTION wake();
CREATE TRIGGER tree_wakes AFTER INSERT ON tree FOR EACH ROW EXECUTE FUNCTION wake();
