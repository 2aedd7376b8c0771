"""What master and workers agree on: orders and outcomes, unit jobs, facts of a boot, names and keys of kernels, trust."""
