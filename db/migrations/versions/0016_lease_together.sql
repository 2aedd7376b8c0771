-- An attempt on a cluster has the cluster and all of its nodes: one row of `lease` each, taken and released together.
-- Its order names the cluster, so the controller renews and loses that row.
ALTER TABLE lease DROP CONSTRAINT lease_attempt_key;
CREATE INDEX lease_by_attempt ON lease (attempt);
