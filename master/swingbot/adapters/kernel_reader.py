"""Compare records of kernel builds in a child process, because strangers' code fills them: a record
of 3 million values takes 300 MB and a second.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from tempfile import TemporaryFile
from typing import IO, Any, BinaryIO, Final

from swingbot.adapters import limits
from swingbot.adapters.limited_reader import ReaderProcess, copy_most
from swingbot.adapters.process import PATIENCE
from swingbot.adapters.remembered import Remembered
from swingbot.core.proof.cover import CodeFunction
from swingbot.core.proof.gates import GateResult
from swingbot.service.ports.kernels import CodeGrowth, NoRecord, RecordFiles
from swingbot.service.ports.results import ReadingStopped, TooMuchReading, Unreadable
from swingbot_jobs import codec
from swingbot_jobs.kernel_diff import FILE
from swingbot_jobs.limits import KCONFIG_BYTES, KERNEL_RECORD_BYTES

_TURN_SECONDS: Final = 20.0


class ChildKernelRecords:
    """Answers questions about files that `open_artifact` opens by their sha256.

    The threads of a process take turns, since a child may take RECORD_READER_BYTES of memory.
    Answers are remembered, that a record cannot be used too.
    """

    def __init__(self, open_artifact: Callable[[str], BinaryIO]) -> None:
        self._open, self._turn = open_artifact, threading.Lock()
        self._known: Remembered[str, bytes] = Remembered(len)

    def change(self, base: RecordFiles, head: RecordFiles) -> dict[str, Any]:
        records, configs = (base.record, head.record), (base.config, head.config)
        facts: dict[str, Any] = self._known_or_asked({"read": "change"}, records, configs)["facts"]
        return facts

    def config(self, base: str, head: str) -> list[dict[str, Any]]:
        answer = self._known_or_asked({"read": "config"}, (), (base, head))
        rows: list[dict[str, Any]] | None = answer["config"]
        if rows is None:
            raise NoRecord("The configuration of a kernel is not in the artifact store.")
        return rows

    def growth(self, base: RecordFiles, head: RecordFiles) -> CodeGrowth:
        answer = self._answer({"read": "growth"}, base, head)
        return CodeGrowth(base=answer["base"], head=answer["head"], lines=answer["lines"])

    def code(self, base: RecordFiles, head: RecordFiles) -> GateResult:
        return codec.typed(GateResult, self._answer({"read": "code"}, base, head)["result"])

    def watched(self, base: RecordFiles, head: RecordFiles) -> tuple[str, ...] | GateResult:
        answer = self._answer({"read": "watched"}, base, head)
        if "names" in answer:
            return codec.typed(tuple[str, ...], answer["names"])
        return codec.typed(GateResult, answer["result"])

    def executed(
        self,
        base: RecordFiles,
        head: RecordFiles,
        calls: Sequence[Mapping[str, float]],
        asked: Iterable[str],
        where: str,
    ) -> GateResult:
        question = {
            "read": "executed",
            "calls": list(map(dict, calls)),
            "asked": list(asked),
            "where": where,
        }
        answer = self._answer(question, base, head)
        return codec.typed(GateResult, answer["result"])

    def functions(
        self, kernel: RecordFiles, objects: Sequence[str]
    ) -> tuple[list[CodeFunction], dict[str, str]]:
        answer = self._answer({"read": "functions", "objects": list(objects)}, kernel, kernel)
        return [codec.typed(CodeFunction, row) for row in answer["functions"]], answer["unknown"]

    def _answer(
        self, question: Mapping[str, Any], base: RecordFiles, head: RecordFiles
    ) -> dict[str, Any]:
        return self._known_or_asked(question, (base.record, head.record))

    def _known_or_asked(
        self,
        question: Mapping[str, Any],
        records: Sequence[str],
        configs: Sequence[str | None] = (),
    ) -> dict[str, Any]:
        """Return the answer of the child, or the one that is known. Raises NoRecord."""
        asked = json.dumps([question, records, configs], sort_keys=True)
        known = self._known.get(asked, lambda: self._asked(question, records, configs))
        answer: dict[str, Any] = json.loads(known)
        if "wrong" in answer:
            raise NoRecord(f"A record ({FILE}) cannot be used: {answer['wrong']}.")
        return answer

    def _asked(
        self, question: Mapping[str, Any], records: Sequence[str], configs: Sequence[str | None]
    ) -> bytes:
        with TemporaryFile() as file:
            each = list(dict.fromkeys(records))
            sizes = [self._spool(name, KERNEL_RECORD_BYTES + 1, file) for name in each]
            if None in sizes:
                lost = each[sizes.index(None)]
                raise NoRecord(f"The record {lost[:12]} is not in the artifact store.")
            of_configs = [self._spool(name, KCONFIG_BYTES, file) for name in configs]
            file.seek(0)
            try:
                answer = self._read({**question, "sizes": sizes, "config_sizes": of_configs}, file)
            except ReadingStopped as error:
                if isinstance(error, TooMuchReading):
                    return json.dumps({"wrong": str(error)}).encode()
                raise NoRecord(f"The records ({FILE}) were not compared: {error}.") from None
            except Unreadable as error:
                return json.dumps({"wrong": str(error)}).encode()
        return json.dumps(answer).encode()

    def _spool(self, sha256: str | None, most: int, file: IO[bytes]) -> int | None:
        """Append a stored file, and return its bytes; None if there is none."""
        if sha256 is not None:
            with suppress(OSError), self._open(sha256) as stored:
                return copy_most(stored, file, most)
        return None

    def _read(self, request: Mapping[str, Any], file: IO[bytes]) -> dict[str, Any]:
        """Ask a child of its own. Raises Unreadable."""
        if not self._turn.acquire(timeout=_TURN_SECONDS):
            raise ReadingStopped("others are being compared; ask again in a minute")
        try:
            reader = ReaderProcess(
                "kernel_child",
                memory_bytes=limits.RECORD_READER_BYTES,
                seconds=limits.RECORD_READER_SECONDS,
                answer_bytes=limits.RECORD_ANSWER_BYTES,
                patience=PATIENCE,
            )
            with closing(reader):
                return reader.ask(request, file)
        finally:
            self._turn.release()
