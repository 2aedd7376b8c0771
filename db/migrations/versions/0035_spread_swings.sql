-- Swings of the spread between boots (docs/statistics.md, "From a swing to a bisection").

ALTER TABLE swing DROP CONSTRAINT swing_source_check;                   -- spread: the boots of the last tips spread further, or less far
ALTER TABLE swing ADD CONSTRAINT swing_source_check CHECK (source IN ('base', 'history', 'creep', 'spread', 'expected')) NOT VALID;
ALTER TABLE swing VALIDATE CONSTRAINT swing_source_check;
ALTER TABLE swing DROP CONSTRAINT swing_creep_has_anchor;
ALTER TABLE swing ADD CONSTRAINT swing_creep_has_anchor
    CHECK (CASE WHEN source IN ('creep', 'spread') THEN anchor IS NOT NULL WHEN source = 'expected' THEN true ELSE anchor IS NULL END) NOT VALID;
ALTER TABLE swing VALIDATE CONSTRAINT swing_creep_has_anchor;
