"""Comparisons: request, estimate, judge, cancel."""
