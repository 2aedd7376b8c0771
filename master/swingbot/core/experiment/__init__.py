"""Experiments: kernels as the rows of one table, and the reference of each row."""
