"""Benchmark programs that are not packaged, built from the operator's sources.

`recipe` has the build commands (pure), `source` reads an archive or a checkout, `build` runs the
build in the sandbox, `installed` stores the binaries for boots, `listing` lists the programs that
each job file needs. See docs/jobs.md.
"""
