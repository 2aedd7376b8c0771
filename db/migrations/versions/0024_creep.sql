-- A bisection may end with a creep: the level moves with every commit, and no single one is named (docs/bisecting.md).

ALTER TABLE bisection DROP CONSTRAINT bisection_status_check;
ALTER TABLE bisection ADD CONSTRAINT bisection_status_check CHECK (status IN ('running', 'culprit', 'credible_set', 'several', 'creep', 'not_reproduced', 'inconclusive', 'failed', 'cancelled')) NOT VALID;
ALTER TABLE bisection VALIDATE CONSTRAINT bisection_status_check;
