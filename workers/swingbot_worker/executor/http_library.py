"""httpx without its command line, whose optional libraries take half of its import of 0.25 s."""

from __future__ import annotations

import sys

sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # as if they were missing

import httpx  # noqa: E402

__all__ = ["httpx"]
