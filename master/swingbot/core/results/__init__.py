"""Results of kernels that were measured for whatever reason: what they show and what is missing."""
