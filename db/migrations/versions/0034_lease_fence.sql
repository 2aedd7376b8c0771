-- The fencing token of a lease: greater than that of every earlier holder, on every testbox.
-- It begins at the time of the migration, in seconds, so that a testbox which has served another
-- database (one that was set up anew) has seen smaller ones only.
ALTER TABLE lease ADD COLUMN fence bigint CHECK (fence > 0);
DO $$
BEGIN
  EXECUTE 'CREATE SEQUENCE lease_fence_seq START ' || extract(epoch FROM clock_timestamp())::bigint
    || ' OWNED BY lease.fence';
END
$$;
