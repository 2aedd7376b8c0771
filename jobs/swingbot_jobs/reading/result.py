"""Results of runs as values, shared by all code that reads or parses results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Samples = dict[str, list[float]]
RunStatus = Literal["ok", "failed", "missing", "invalid", "warmup"]


class ParseError(ValueError):
    """A program's output holds no valid result; the message says why in one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """The files of a results.tar: `runs` by (unit job, run number), `facts` by name,
    `notes` about what was left out and why.
    """

    runs: Mapping[tuple[str, int], Mapping[str, str]]
    facts: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedRun:
    """One expected run: `invalid` if the machine did not meet the job's demands or a limit ended
    it before a healthy run is over, `warmup` if it was a warm-up run.

    `seconds` is the guest's time; `reason` is always set unless `ok`, where it may hold a remark.
    `samples` are by full metric name; a run that is not ok has none, so that half a result never
    counts. A run for `monitor` has only that monitor's samples; its benchmark's numbers are stored
    under `<monitor>.beside.` and never compared.
    """

    unit_job: str
    number: int
    status: RunStatus
    reason: str | None = None
    samples: Samples = field(default_factory=dict)
    seconds: float | None = None
    monitor: str | None = None
    limited: bool = False  # a limit ended it before a healthy run is over: it must be repeated
