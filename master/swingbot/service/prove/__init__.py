"""Gates of proof that an incident passes before its mail."""
