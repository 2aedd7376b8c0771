-- What a boot is for is part of its key: boots of two purposes are never the same boot, however many either has.
-- What there was before is of the search, whatever its number: its key and its perturbation stay.

ALTER TABLE orders ADD COLUMN purpose text NOT NULL DEFAULT 'search';    -- of a boot; core/plan/boot_numbers.py names them
ALTER TABLE orders ADD CONSTRAINT order_purpose_is_a_word CHECK (purpose ~ '^[a-z]+(-[0-9]+)?$') NOT VALID;
ALTER TABLE orders VALIDATE CONSTRAINT order_purpose_is_a_word;

ALTER TABLE boot ADD COLUMN purpose text NOT NULL DEFAULT 'search';
ALTER TABLE boot ADD CONSTRAINT boot_purpose_is_a_word CHECK (purpose ~ '^[a-z]+(-[0-9]+)?$') NOT VALID;
ALTER TABLE boot VALIDATE CONSTRAINT boot_purpose_is_a_word;
CREATE UNIQUE INDEX boot_once_a_purpose ON boot (image_sha256, testbox, spec, series, purpose, k);
DROP INDEX boot_once;

ALTER TABLE comparison ADD COLUMN purpose text NOT NULL DEFAULT 'search';  -- of its boots, which have the numbers first_k .. first_k + boots - 1
ALTER TABLE comparison ADD CONSTRAINT comparison_purpose_is_a_word CHECK (purpose ~ '^[a-z]+(-[0-9]+)?$') NOT VALID;
ALTER TABLE comparison VALIDATE CONSTRAINT comparison_purpose_is_a_word;
