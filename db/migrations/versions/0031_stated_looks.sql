-- How many looks a request stated (docs/statistics.md, "Judging a table again").

ALTER TABLE comparison ADD COLUMN looks_stated integer NOT NULL DEFAULT 1 CHECK (looks_stated >= 1);
