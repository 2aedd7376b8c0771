"""Results: ingest outcomes, load boots for the statistics, and parse raw results again."""
