"""Comparisons: requested, foreseen, judged, cancelled."""
