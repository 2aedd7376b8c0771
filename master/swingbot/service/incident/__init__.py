"""Incidents: one per culprit, measured against its parent, explained, kept until fixed."""
