"""What every request over the web has in common: its person, its commits, its dry run."""
