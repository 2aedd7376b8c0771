"""Port: questions about the records of two kernel builds, which strangers' code may have filled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from swingbot.core.proof.cover import CodeFunction
from swingbot.core.proof.gates import GateResult


class NoRecord(Exception):
    """The builds cannot be compared. The message gives the reason in one sentence."""


@dataclass(frozen=True, slots=True)
class RecordFiles:
    """What a build left in the artifact store, by sha256: the record of its functions and data, and
    its kernel configuration if there is one.
    """

    record: str
    config: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeGrowth:
    """Bytes of each section of two kernels, and as text what differs; no lines: nothing."""

    base: Mapping[str, int]
    head: Mapping[str, int]
    lines: Sequence[str]


class KernelRecords(Protocol):
    """Questions about the builds of base and head, or of one kernel; each raises NoRecord."""

    def change(self, base: RecordFiles, head: RecordFiles) -> dict[str, Any]:
        """Return the facts of `kernel_diff.kernel_change`."""

    def config(self, base: str, head: str) -> list[dict[str, Any]]:
        """Return the rows of `kernel_diff.config_difference` of two stored configurations (their
        sha256)."""

    def growth(self, base: RecordFiles, head: RecordFiles) -> CodeGrowth: ...

    def code(self, base: RecordFiles, head: RecordFiles) -> GateResult:
        """Return the result of gate `code`."""

    def watched(self, base: RecordFiles, head: RecordFiles) -> tuple[str, ...] | GateResult:
        """Return the functions whose calls to count; the result of gate `executed` if there are
        none.
        """

    def executed(
        self,
        base: RecordFiles,
        head: RecordFiles,
        calls: Sequence[Mapping[str, float]],
        asked: Iterable[str],
        where: str,
    ) -> GateResult:
        """Return the result of gate `executed` from the `calls` in base and in head; the rest as in
        `executed.gate_result`.
        """

    def functions(
        self, kernel: RecordFiles, objects: Sequence[str]
    ) -> tuple[list[CodeFunction], dict[str, str]]:
        """Return the functions of these objects of one kernel; and for each object that it lacks
        a question that names a similar source, or "".
        """
