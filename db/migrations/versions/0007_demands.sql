-- A run on a machine that does not meet its job's demands is invalid; a warm-up run is not counted.

ALTER TABLE run DROP CONSTRAINT run_status_check;
ALTER TABLE run ADD CONSTRAINT run_status_check CHECK (status IN ('ok', 'failed', 'missing', 'invalid', 'warmup')) NOT VALID;
ALTER TABLE run VALIDATE CONSTRAINT run_status_check;
