"""The contract between master and workers: orders, outcomes, unit jobs, facts of a boot,
kernel names and keys, trust.
"""
