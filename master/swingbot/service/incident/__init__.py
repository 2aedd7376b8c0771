"""Incidents: one per culprit, measured against its parent, attributed, and tracked until fixed."""
