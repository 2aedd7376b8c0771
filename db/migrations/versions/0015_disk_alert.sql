-- One more kind of alert: the disk of the state directory has so little space that no orders are dispatched.
ALTER TABLE alert DROP CONSTRAINT alert_kind_check;
ALTER TABLE alert ADD CONSTRAINT alert_kind_check CHECK (kind IN ('lost', 'quarantined', 'moved', 'invalid', 'stuck', 'disk')) NOT VALID;
ALTER TABLE alert VALIDATE CONSTRAINT alert_kind_check;
