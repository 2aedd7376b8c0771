"""Benchmark programs that are not packaged, built from the operator's sources.

`source` reads an archive or a checkout, `build` runs the commands of `meta.yaml` in the sandbox and
stores the binaries for boots, `listing` lists the programs that each job file needs. See
docs/jobs.md.
"""
