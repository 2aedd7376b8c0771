-- Trust level of a kernel's code: whether it is built behind walls or at all, and which testboxes may boot it.
-- Existing rows were measured as trusted, because patches needed an operator then.

ALTER TABLE tree ADD COLUMN trust text NOT NULL DEFAULT 'trusted';
ALTER TABLE tree ADD CONSTRAINT tree_trust_check CHECK (trust IN ('trusted', 'untrusted')) NOT VALID;
ALTER TABLE tree VALIDATE CONSTRAINT tree_trust_check;

ALTER TABLE variant ADD COLUMN trust text NOT NULL DEFAULT 'trusted';
ALTER TABLE variant ADD CONSTRAINT variant_trust_check CHECK (trust IN ('trusted', 'untrusted')) NOT VALID;
ALTER TABLE variant VALIDATE CONSTRAINT variant_trust_check;

-- The same commit at two trust levels is two variants with two build keys, so their results never mix.
ALTER TABLE variant ADD CONSTRAINT variant_once_a_level UNIQUE (tree, commit, kconfig, compiler, layout, trust);
ALTER TABLE variant DROP CONSTRAINT variant_once;
