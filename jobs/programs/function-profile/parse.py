"""Calls by symbol, between the lines `calls` and `end`, summed by source function.

A function that could be counted and was not called has 0.
A function without a hook (`-`) is missing: the compiler inlined it into its callers,
it runs only at boot, or it must not be traced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from swingbot_jobs.kernel_diff import source_name
from swingbot_jobs.reading.result import ParseError

ROW = re.compile(r"(?P<calls>-|[0-9]{1,18}) (?P<symbol>[A-Za-z_][A-Za-z0-9_.]{0,180})")
NO_PROFILER = (
    "this kernel has no function profiler; build it with the fragment trace, as in vm-x86_64+trace"
)


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return calls by function.

    Raises ParseError if nothing was counted or the list is incomplete.
    """
    lines = files.get("function-profile", "").splitlines()
    if lines[:1] == ["no profiler"]:
        raise ParseError(NO_PROFILER)
    if lines[:1] != ["calls"] or lines[-1] != "end":
        raise ParseError("the list of calls is incomplete")
    calls = {"counted": 0.0}
    for line in lines[1:-1]:
        row = ROW.fullmatch(line)
        if row is None:
            raise ParseError(f"{line[:80]!r} is not a line with a number of calls and a function")
        if row["calls"] != "-":
            name = source_name(row["symbol"])
            calls["counted"] += 1.0
            calls[f"calls.{name}"] = calls.get(f"calls.{name}", 0.0) + float(row["calls"])
    return dict(calls)
