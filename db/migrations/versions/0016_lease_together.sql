-- An attempt on a cluster has the cluster and each of its nodes: a row of `lease` for each, taken and given back together.
-- Its order names the cluster, so that row is the one that its controller renews and loses.
ALTER TABLE lease DROP CONSTRAINT lease_attempt_key;
CREATE INDEX lease_by_attempt ON lease (attempt);
