"""Executing one attempt in a process of its own, which outlives the command, the Buildbot worker and the master that asked for it."""

from __future__ import annotations
