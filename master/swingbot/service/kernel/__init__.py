"""Kernels: map commits to variants, and compare built kernels."""
