-- Histories over the tips of a watched branch (docs/statistics.md, "Histories").

CREATE TABLE tree_history (                                             -- replaced with each measured tip
    tree     bigint NOT NULL REFERENCES tree,
    testbox  text NOT NULL,
    unit_job text NOT NULL,
    metric   text NOT NULL,
    upto     bigint NOT NULL REFERENCES comparison,                     -- its last tip
    findings jsonb NOT NULL,                                            -- core/stats/findings.py, and the tips that it names by number
    PRIMARY KEY (tree, testbox, unit_job, metric)
);
