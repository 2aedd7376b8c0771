-- Input and decision of each step of a bisection, for review and replay; input from people; branches of merges.

CREATE TABLE bisection_step (
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
CREATE TRIGGER bisection_steer_wakes AFTER INSERT ON bisection_steer FOR EACH ROW EXECUTE FUNCTION wake();

ALTER TABLE bisection_point ADD COLUMN hint double precision NOT NULL DEFAULT 1 CONSTRAINT bisection_point_hint_check CHECK (hint > 0);

ALTER TABLE bisection ADD COLUMN parent bigint REFERENCES bisection;    -- its culprit is the merge of the branch that this bisection searches
ALTER TABLE bisection ADD COLUMN merged text CHECK (merged ~ '^[0-9a-f]{40}$');
ALTER TABLE bisection ADD CONSTRAINT bisection_of_a_merge CHECK ((parent IS NULL) = (merged IS NULL));
CREATE INDEX bisection_by_parent ON bisection (parent) WHERE parent IS NOT NULL;
