-- Where the time of a testbox went: its orders that ended in a span of time.
CREATE INDEX orders_by_testbox ON orders (testbox, ended_at) WHERE testbox IS NOT NULL;
