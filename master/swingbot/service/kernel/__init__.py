"""Kernels: from a commit to a variant, and what a commit did to the built kernel."""
