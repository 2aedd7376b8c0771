-- Recipients of a report, decisions about it, the switch for all mail, and mails about a week instead of an incident.

ALTER TABLE report
    ADD COLUMN would_to text[]  NOT NULL DEFAULT '{}',                  -- recipients without the dry run
    ADD COLUMN would_cc text[]  NOT NULL DEFAULT '{}',
    ADD COLUMN lists    text[]  NOT NULL DEFAULT '{}',                  -- addresses of to, cc, would_to and would_cc that are mailing lists
    ADD COLUMN left_out jsonb   NOT NULL DEFAULT '[]',                  -- [[address, reason], ...]
    ADD COLUMN dry_run  boolean NOT NULL DEFAULT true,
    ADD COLUMN reason   text,                                           -- why it got its first state, or why it was last held
    ADD COLUMN metric   text,                                           -- with testbox and passed: the class for moderation
    ADD COLUMN testbox  text,
    ADD COLUMN passed   text[]  NOT NULL DEFAULT '{}',                  -- proof gates that passed, sorted
    ADD COLUMN week     date;                                           -- Monday of the week of a digest
ALTER TABLE report ALTER COLUMN incident DROP NOT NULL;
ALTER TABLE report DROP CONSTRAINT report_kind_check;
ALTER TABLE report ADD CONSTRAINT report_kind_check CHECK (kind IN ('first', 'still', 'update', 'fixed', 'retraction', 'answer', 'digest')) NOT VALID;
ALTER TABLE report VALIDATE CONSTRAINT report_kind_check;
ALTER TABLE report ADD CONSTRAINT report_of_incident_or_week
    CHECK ((incident IS NULL) = (kind = 'digest') AND (week IS NULL) = (kind <> 'digest')) NOT VALID;
ALTER TABLE report VALIDATE CONSTRAINT report_of_incident_or_week;
CREATE UNIQUE INDEX digest_once ON report (week) WHERE week IS NOT NULL;
CREATE INDEX report_by_class ON report (metric, testbox, passed) WHERE metric IS NOT NULL;

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

-- A single row: while it says stopped, no mail is sent.
CREATE TABLE mail_switch (
    one     boolean PRIMARY KEY DEFAULT true CHECK (one),
    stopped boolean NOT NULL DEFAULT false,
    who     text,
    why     text,
    at      timestamptz NOT NULL DEFAULT now()
);
INSERT INTO mail_switch DEFAULT VALUES;
CREATE TRIGGER mail_switch_wakes AFTER UPDATE ON mail_switch FOR EACH ROW EXECUTE FUNCTION wake();
