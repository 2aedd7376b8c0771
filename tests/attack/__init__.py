"""Attacks on a running service, one a module: bounded in count and time, judged by their effect.

A module has NAME, WANTED (a sentence: what must hold) and `run(target) -> Result`.
`python -m tests.attack --help` runs them against a service.
"""
