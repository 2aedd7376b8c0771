-- The purpose of a boot is part of its key: boots of two purposes are never the same boot, whatever their numbers.
-- Existing boots belong to the search, whatever their number: key and perturbation do not change.

ALTER TABLE orders ADD COLUMN purpose text NOT NULL DEFAULT 'search';    -- of a boot; defined in core/plan/boot_numbers.py
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
