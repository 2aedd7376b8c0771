-- Places where the commit of an incident was found, decisions of people, and mails that were withdrawn before they were sent.

ALTER TABLE incident DROP CONSTRAINT incident_status_check;
ALTER TABLE incident ADD CONSTRAINT incident_status_check CHECK (status IN ('open', 'expected', 'fixed', 'invalid', 'duplicate', 'closed')) NOT VALID;
ALTER TABLE incident VALIDATE CONSTRAINT incident_status_check;
ALTER TABLE incident ADD COLUMN merged_into bigint REFERENCES incident;
ALTER TABLE incident ADD COLUMN fixed_by    text CONSTRAINT incident_fixed_by_check CHECK (fixed_by ~ '^[0-9a-f]{40}$');
ALTER TABLE incident ADD COLUMN fix_check   bigint REFERENCES comparison;  -- the culprit's parent against a tip with that commit; NULL: no such tip yet
ALTER TABLE incident ADD CONSTRAINT incident_is_merged_elsewhere CHECK (merged_into <> id);
ALTER TABLE incident ADD CONSTRAINT incident_duplicate_has_other CHECK (merged_into IS NULL OR status = 'duplicate') NOT VALID;
ALTER TABLE incident VALIDATE CONSTRAINT incident_duplicate_has_other;
CREATE INDEX incident_by_merged_into ON incident (merged_into) WHERE merged_into IS NOT NULL;

-- A culprit as found by one bisection: the same commit by another metric, on another testbox or branch, or a rebased copy.
CREATE TABLE sighting (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    incident   bigint NOT NULL REFERENCES incident,
    bisection  bigint NOT NULL REFERENCES bisection,
    culprit    bigint NOT NULL REFERENCES variant,
    patch_id   text CHECK (patch_id ~ '^([0-9a-f]{40})?$'),             -- git patch-id --stable; '': none (merge, root, no change); NULL: not computed yet
    comparison bigint REFERENCES comparison,                            -- parent against culprit
    report     bigint REFERENCES report,                                -- the mail that reports it
    seen_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT sighting_once UNIQUE (bisection, culprit)
);
CREATE INDEX sighting_by_incident ON sighting (incident, id);
CREATE INDEX sighting_by_culprit ON sighting (culprit);
CREATE INDEX sighting_by_patch_id ON sighting (patch_id) WHERE patch_id <> '';
INSERT INTO sighting (incident, bisection, culprit, comparison, report, seen_at)
SELECT i.id, ib.bisection, i.culprit, i.comparison, (SELECT min(r.id) FROM report r WHERE r.incident = i.id AND r.kind = 'first'), i.created_at
FROM incident i JOIN incident_bisection ib ON ib.incident = i.id ORDER BY i.id, ib.bisection;

CREATE TABLE incident_event (                                           -- events of an incident, with the person behind each
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    incident bigint NOT NULL REFERENCES incident,
    act      text NOT NULL CHECK (act IN ('opened', 'seen', 'merge', 'split', 'close', 'reopen', 'expected', 'fixed-by', 'invalid', 'checked', 'withdrawn')),
    who      text NOT NULL CHECK (who <> ''),                           -- user@host, a name from the pages, or swingbot itself
    reason   text,
    detail   jsonb NOT NULL DEFAULT '{}',                               -- ids and commits of the event
    at       timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX incident_event_by_incident ON incident_event (incident, id);
CREATE TRIGGER incident_event_wakes AFTER INSERT ON incident_event FOR EACH ROW EXECUTE FUNCTION wake();

ALTER TABLE report ADD COLUMN withdrawn text;                           -- why it was dropped because of its incident before it was sent; another may follow
ALTER TABLE report ADD CONSTRAINT report_withdrawn_is_dropped CHECK (withdrawn IS NULL OR state = 'dropped') NOT VALID;
ALTER TABLE report VALIDATE CONSTRAINT report_withdrawn_is_dropped;
CREATE UNIQUE INDEX report_one_first ON report (incident) WHERE kind = 'first' AND state <> 'dropped';

ALTER TABLE swing DROP CONSTRAINT swing_source_check;                   -- expected: a commit in its range has a change marked as expected
ALTER TABLE swing ADD CONSTRAINT swing_source_check CHECK (source IN ('base', 'history', 'creep', 'expected')) NOT VALID;
ALTER TABLE swing VALIDATE CONSTRAINT swing_source_check;
ALTER TABLE swing DROP CONSTRAINT swing_creep_has_anchor;
ALTER TABLE swing ADD CONSTRAINT swing_creep_has_anchor
    CHECK (CASE source WHEN 'creep' THEN anchor IS NOT NULL WHEN 'expected' THEN true ELSE anchor IS NULL END) NOT VALID;
ALTER TABLE swing VALIDATE CONSTRAINT swing_creep_has_anchor;
