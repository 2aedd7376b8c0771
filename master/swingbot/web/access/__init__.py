"""Who may read and change what, and how much of it."""
