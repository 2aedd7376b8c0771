"""Job files: from an LKP-style file to unit jobs, resolved for one testbox."""
