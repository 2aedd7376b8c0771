"""What came back: outcomes ingested, boots read for the statistics, raw results read again."""
