"""Tables of kernels: their rows, and the reference of each row."""
