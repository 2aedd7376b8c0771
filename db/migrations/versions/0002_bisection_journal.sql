-- What each step of a bisection was shown and decided, so that it can be read and decided again; what people told it; branches of merges.

CREATE TABLE bisection_step (
    bisection bigint NOT NULL REFERENCES bisection,
    number    integer NOT NULL CHECK (number > 0),
    engine    text NOT NULL,                                            -- digest of the engine's sources: another one may decide otherwise
    facts     json NOT NULL,                                            -- what differs from the step before; json, not jsonb: its text is kept
    digest    text NOT NULL CHECK (digest ~ '^[0-9a-f]{64}$'),          -- of all that the step was shown
    action    json NOT NULL,                                            -- what it decided, and why
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (bisection, number)
);

CREATE TABLE bisection_steer (                                          -- what people told a bisection; in force from its next step on
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    bisection bigint NOT NULL REFERENCES bisection,
    act       text NOT NULL CHECK (act IN ('skip', 'unskip', 'hint', 'resume')),
    points    integer[] NOT NULL,                                       -- which commits, by index
    factor    double precision CHECK (factor > 0),                      -- hint: times the prior weight
    boots     integer CHECK (boots > 0),                                -- resume: boots that may be spent from then on
    why       text,
    who       text NOT NULL,
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT steer_hint_has_factor CHECK ((act = 'hint') = (factor IS NOT NULL)),
    CONSTRAINT steer_resume_has_boots CHECK ((act = 'resume') = (boots IS NOT NULL))
);
CREATE INDEX bisection_steer_by_bisection ON bisection_steer (bisection, id);
CREATE TRIGGER bisection_steer_wakes AFTER INSERT ON bisection_steer FOR EACH ROW EXECUTE FUNCTION wake();

ALTER TABLE bisection_point ADD COLUMN hint double precision NOT NULL DEFAULT 1 CONSTRAINT bisection_point_hint_check CHECK (hint > 0);

ALTER TABLE bisection ADD COLUMN parent bigint REFERENCES bisection;    -- its culprit is the merge of the branch that this one searches
ALTER TABLE bisection ADD COLUMN merged text CHECK (merged ~ '^[0-9a-f]{40}$');
ALTER TABLE bisection ADD CONSTRAINT bisection_of_a_merge CHECK ((parent IS NULL) = (merged IS NULL));
CREATE INDEX bisection_by_parent ON bisection (parent) WHERE parent IS NOT NULL;
