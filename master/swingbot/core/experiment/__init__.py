"""Experiments: kernels laid out as the rows of one table, and what each row is compared with."""
