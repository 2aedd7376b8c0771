"""Gates of proof between an incident and its mail."""
