-- State of each testbox, with time and reason; holder and expiry of its lease; alerts to the operator.

ALTER TABLE lease
    ADD COLUMN holder text,                                             -- host of the controller that drives the testbox; NULL: none has started
    ADD COLUMN until  timestamptz;                                      -- a controller without a sign of life until then is lost
ALTER TABLE lease ADD CONSTRAINT lease_holder_is_dated CHECK ((holder IS NULL) = (until IS NULL)) NOT VALID;
ALTER TABLE lease VALIDATE CONSTRAINT lease_holder_is_dated;

CREATE TABLE testbox_now (                                              -- swingbot/core/model/testbox_state.py; testbox.state says whether it may work
    testbox         text PRIMARY KEY REFERENCES testbox,
    state           text NOT NULL DEFAULT 'idle' CHECK (state IN ('idle', 'leased', 'booting', 'running', 'returning', 'lost', 'quarantined')),
    since           timestamptz NOT NULL DEFAULT clock_timestamp(),
    why             text NOT NULL DEFAULT '',
    attempt         bigint REFERENCES attempt,                          -- current attempt, or the attempt during which it was lost
    failures        integer NOT NULL DEFAULT 0 CHECK (failures >= 0),   -- attempts in a row that failed because of it or its controller
    down            integer NOT NULL DEFAULT 0 CHECK (down >= 0),       -- boots in a row that did not come up
    hardware        jsonb,                                              -- {"model", "cpu_model", "nr_cpu", "memory_kb", "microcode"}, as far as known
    screening_boots integer NOT NULL DEFAULT 0 CHECK (screening_boots >= 0),  -- anchor boots required; 0: no screening
    screening_since timestamptz NOT NULL DEFAULT clock_timestamp(),     -- anchor boots count from then on
    screened_at     timestamptz                                         -- its noise is known; NULL: its results do not count yet, if it needs screening
);
INSERT INTO testbox_now (testbox, state, why, attempt, screened_at)
SELECT x.name, CASE WHEN l.attempt IS NOT NULL THEN 'leased' WHEN x.state = 'quarantined' THEN 'quarantined' ELSE 'idle' END, coalesce(x.reason, ''), l.attempt,
       (SELECT max(b.booted_at) FROM boot b WHERE b.testbox = x.name)
FROM testbox x LEFT JOIN lease l ON l.testbox = x.name;

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
    kind     text NOT NULL CHECK (kind IN ('lost', 'quarantined', 'moved', 'invalid', 'stuck')),
    testbox  text REFERENCES testbox,                                   -- NULL: about the lab as a whole
    reason   text NOT NULL,
    began_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at timestamptz                                                -- NULL: ongoing
);
CREATE UNIQUE INDEX alert_once ON alert (kind, coalesce(testbox, '')) WHERE ended_at IS NULL;
CREATE INDEX alert_by_testbox ON alert (testbox, id);

ALTER TABLE report ADD COLUMN alert bigint REFERENCES alert;            -- of the kind 'alert': revision 1 reports the start, 2 the end
ALTER TABLE report DROP CONSTRAINT report_kind_check;
ALTER TABLE report ADD CONSTRAINT report_kind_check
    CHECK (kind IN ('first', 'still', 'update', 'fixed', 'retraction', 'answer', 'digest', 'alert')) NOT VALID;
ALTER TABLE report VALIDATE CONSTRAINT report_kind_check;
ALTER TABLE report DROP CONSTRAINT report_of_incident_or_week;
ALTER TABLE report ADD CONSTRAINT report_of_incident_or_week
    CHECK ((incident IS NULL) = (kind IN ('digest', 'alert')) AND (week IS NULL) = (kind <> 'digest') AND (alert IS NULL) = (kind <> 'alert')) NOT VALID;
ALTER TABLE report VALIDATE CONSTRAINT report_of_incident_or_week;
CREATE UNIQUE INDEX report_of_alert_once ON report (alert, revision) WHERE alert IS NOT NULL;
