"""What came back from runs, as values: shared by everything that reads or parses results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Samples = dict[str, list[float]]
RunStatus = Literal["ok", "failed", "missing", "invalid", "warmup"]


class ParseError(ValueError):
    """A program's output holds no result that can be believed; one sentence says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """The files of a results.tar: `runs` by (unit job, run number), `facts` by name, `notes` about what was left out and why."""

    runs: Mapping[tuple[str, int], Mapping[str, str]]
    facts: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedRun:
    """One expected run: `invalid` when the machine was not as the job demands, `warmup` when it only warmed up.

    `seconds` are the guest's; `reason` is always there unless `ok`, where it may hold a remark.
    `samples` are by full metric name; a run that is not ok has none, so that half a result never counts. A run for the sake of `monitor`
    has only that monitor's samples; its benchmark's own numbers stand under `<monitor>.beside.`, where no comparison takes them for a measurement.
    """

    unit_job: str
    number: int
    status: RunStatus
    reason: str | None = None
    samples: Samples = field(default_factory=dict)
    seconds: float | None = None
    monitor: str | None = None
