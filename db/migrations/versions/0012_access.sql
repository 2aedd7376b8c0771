-- Write access over the web: tokens by name and role, their sessions, and a log of their use.
CREATE TABLE access_token (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    who        text        NOT NULL CHECK (who <> ''),
    role       text        NOT NULL CHECK (role IN ('reader', 'submitter', 'moderator', 'operator')),
    digest     text        UNIQUE CHECK (digest ~ '^[0-9a-f]{64}$'),       -- SHA-256 of the token; NULL: the operator's key, which is derived from a file
    note       text,
    made_by    text        NOT NULL,
    made_at    timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,                                                -- NULL: never
    revoked_at timestamptz,
    revoked_by text,
    used_at    timestamptz                                                 -- to the minute
);
CREATE UNIQUE INDEX access_token_one_key ON access_token ((true)) WHERE digest IS NULL;
-- The existing operator's key remains valid: it is the first token, and can be revoked like any other.
INSERT INTO access_token (who, role, note, made_by) VALUES ('operator', 'operator', 'the key that swingbot key prints', 'swingbot');

CREATE TABLE web_session (
    digest  text        PRIMARY KEY CHECK (digest ~ '^[0-9a-f]{64}$'),
    token   bigint      NOT NULL REFERENCES access_token,
    made_at timestamptz NOT NULL DEFAULT now(),
    ends_at timestamptz NOT NULL
);

CREATE TABLE access_event (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    act    text        NOT NULL CHECK (act IN ('create', 'revoke', 'sign in', 'refused', 'sign out', 'compare')),
    who    text        NOT NULL,
    token  bigint      REFERENCES access_token,
    detail text,
    at     timestamptz NOT NULL DEFAULT now()
);

-- Requesters of comparisons over the web, with the estimated cost; a person's quota counts these.
CREATE TABLE asked (
    comparison   bigint           NOT NULL REFERENCES comparison,
    who          text             NOT NULL,
    token        bigint           NOT NULL REFERENCES access_token,
    box_seconds  double precision NOT NULL CHECK (box_seconds >= 0),       -- sum over all testboxes
    at           timestamptz      NOT NULL DEFAULT now(),
    PRIMARY KEY (comparison, who)
);
CREATE INDEX asked_by ON asked (who, at);

-- Files uploaded with an attempt's token; they count against the attempt's cap.
CREATE TABLE attempt_file (
    attempt bigint      NOT NULL REFERENCES attempt ON DELETE CASCADE,
    sha256  text        NOT NULL CHECK (sha256 ~ '^[0-9a-f]{64}$'),
    bytes   bigint      NOT NULL CHECK (bytes >= 0),
    at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (attempt, sha256)
);
