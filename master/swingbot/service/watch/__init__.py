"""Trees, where their branches are, and what their jobs ask of each testbox."""
