"""A table of kernels: its numbers, the columns beside them, and the formats that people paste."""
