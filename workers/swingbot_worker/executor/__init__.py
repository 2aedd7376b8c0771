"""Execution of one attempt in its own process, which survives its command, worker and master."""

from __future__ import annotations
