"""Trees: poll their branches and resolve their jobs for each testbox."""
