-- How far the code of a kernel is trusted: whether it is built behind walls or not at all, and which testboxes may boot it.
-- What there was before was measured as trusted: patches waited for an operator then.

ALTER TABLE tree ADD COLUMN trust text NOT NULL DEFAULT 'trusted';
ALTER TABLE tree ADD CONSTRAINT tree_trust_check CHECK (trust IN ('trusted', 'untrusted')) NOT VALID;
ALTER TABLE tree VALIDATE CONSTRAINT tree_trust_check;

ALTER TABLE variant ADD COLUMN trust text NOT NULL DEFAULT 'trusted';
ALTER TABLE variant ADD CONSTRAINT variant_trust_check CHECK (trust IN ('trusted', 'untrusted')) NOT VALID;
ALTER TABLE variant VALIDATE CONSTRAINT variant_trust_check;

-- The same commit at two levels is two variants with two build keys: nothing that one left is taken for the other.
ALTER TABLE variant ADD CONSTRAINT variant_once_a_level UNIQUE (tree, commit, kconfig, compiler, layout, trust);
ALTER TABLE variant DROP CONSTRAINT variant_once;
