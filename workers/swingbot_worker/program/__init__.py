"""Benchmark programs that no package has, built from sources that the operator names.

`recipe` says how each is built (pure), `source` takes an archive or a checkout in, `build` builds it
behind walls, `installed` keeps the binaries where boots find them, `listing` says what each job file
needs. See docs/jobs.md.
"""
