"""Results: from what programs wrote to samples, and the readers that the parsers of `jobs/programs/` share."""
