-- Who would get a report, how it was judged and by whom; the switch that stops all mail; mails about a week instead of an incident.

ALTER TABLE report
    ADD COLUMN would_to text[]  NOT NULL DEFAULT '{}',                  -- whom it would be sent to without the dry run
    ADD COLUMN would_cc text[]  NOT NULL DEFAULT '{}',
    ADD COLUMN lists    text[]  NOT NULL DEFAULT '{}',                  -- those of to, cc, would_to and would_cc that are mailing lists
    ADD COLUMN left_out jsonb   NOT NULL DEFAULT '[]',                  -- [[address, reason], ...]
    ADD COLUMN dry_run  boolean NOT NULL DEFAULT true,
    ADD COLUMN reason   text,                                           -- why it began in its state, or why it was held last
    ADD COLUMN metric   text,                                           -- with testbox and passed: the class that is moderated together
    ADD COLUMN testbox  text,
    ADD COLUMN passed   text[]  NOT NULL DEFAULT '{}',                  -- gates of proof that passed, sorted
    ADD COLUMN week     date;                                           -- Monday of the week that a digest tells
ALTER TABLE report ALTER COLUMN incident DROP NOT NULL;
ALTER TABLE report DROP CONSTRAINT report_kind_check;
ALTER TABLE report ADD CONSTRAINT report_kind_check CHECK (kind IN ('first', 'still', 'update', 'fixed', 'retraction', 'answer', 'digest')) NOT VALID;
ALTER TABLE report VALIDATE CONSTRAINT report_kind_check;
ALTER TABLE report ADD CONSTRAINT report_of_incident_or_week
    CHECK ((incident IS NULL) = (kind = 'digest') AND (week IS NULL) = (kind <> 'digest')) NOT VALID;
ALTER TABLE report VALIDATE CONSTRAINT report_of_incident_or_week;
CREATE UNIQUE INDEX digest_once ON report (week) WHERE week IS NOT NULL;
CREATE INDEX report_by_class ON report (metric, testbox, passed) WHERE metric IS NOT NULL;

-- What people decided. `counts`: about a mail that no server had been given yet, so about its words.
CREATE TABLE moderation (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    report bigint REFERENCES report,
    act    text NOT NULL CHECK (act IN ('hold', 'release', 'drop', 'readdress', 'stop', 'resume')),
    who    text NOT NULL CHECK (who <> ''),
    why    text,
    was    text,                                                        -- the report's state before
    counts boolean NOT NULL DEFAULT false,
    at     timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT moderation_of_a_report CHECK ((report IS NULL) = (act IN ('stop', 'resume')))
);
CREATE INDEX moderation_of_report ON moderation (report, id);

-- One row: while it says stopped, no mail begins to leave.
CREATE TABLE mail_switch (
    one     boolean PRIMARY KEY DEFAULT true CHECK (one),
    stopped boolean NOT NULL DEFAULT false,
    who     text,
    why     text,
    at      timestamptz NOT NULL DEFAULT now()
);
INSERT INTO mail_switch DEFAULT VALUES;
CREATE TRIGGER mail_switch_wakes AFTER UPDATE ON mail_switch FOR EACH ROW EXECUTE FUNCTION wake();
