-- Proof gates of a culprit before it is reported; the measurements of a gate are a comparison.

ALTER TABLE comparison DROP CONSTRAINT comparison_kind_check;
ALTER TABLE comparison ADD CONSTRAINT comparison_kind_check                 -- gate: two kernels that a gate of an incident compares
    CHECK (kind IN ('asked', 'watch', 'attribute', 'prove', 'anchor', 'gate')) NOT VALID;
ALTER TABLE comparison VALIDATE CONSTRAINT comparison_kind_check;

CREATE TABLE incident_gate (
    incident   bigint NOT NULL REFERENCES incident,
    gate       text NOT NULL CHECK (gate ~ '^[a-z][a-z_]{0,30}$'),          -- swingbot/core/proof/gates.py
    status     text NOT NULL CHECK (status IN ('running', 'pass', 'fail', 'not run')),
    reason     text NOT NULL DEFAULT '',                                    -- half a sentence, with values
    comparison bigint REFERENCES comparison,
    tries      integer NOT NULL DEFAULT 1 CHECK (tries > 0),                -- number of requests
    foreseen   jsonb,                                                       -- {"builds", "boots", "seconds"}, estimated in advance; NULL: it needs none
    detail     jsonb NOT NULL DEFAULT '{}',                                 -- values behind the reason
    asked_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    decided_at timestamptz,
    PRIMARY KEY (incident, gate),
    CONSTRAINT incident_gate_end_is_dated CHECK ((status = 'running') = (decided_at IS NULL)),
    CONSTRAINT incident_gate_says_why CHECK (status <> 'not run' OR reason <> '')
);
CREATE INDEX incident_gate_running ON incident_gate (incident) WHERE status = 'running';
CREATE INDEX incident_gate_by_comparison ON incident_gate (comparison) WHERE comparison IS NOT NULL;
CREATE TRIGGER incident_gate_wakes AFTER INSERT OR UPDATE ON incident_gate FOR EACH ROW EXECUTE FUNCTION wake();
