"""What fails in a round is told at its end, and keeps nothing else from being done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from swingbot.service.ports import Lab


class Faults:
    """Collects what went wrong, one part of the work at a time.

    If no transaction can be begun after a fault (the database is away), there is no use in going on: then the rest of the round is
    left alone, and what the transaction raised is what the caller sees.
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self.found: list[tuple[str, Exception]] = []

    @contextmanager
    def of(self, what: str) -> Iterator[None]:
        """Do one part of the work; a fault in it is kept under the name `what`."""
        try:
            yield
        except Exception as fault:
            with self._lab.transaction("look"):
                pass
            self.found.append((what, fault))

    def tell(self) -> None:
        """Raises ExceptionGroup of all that was kept, if anything was. Its message names each part, with the fault it had."""
        if self.found:
            raise ExceptionGroup(
                "; ".join(f"{what}: {in_a_line(fault)}" for what, fault in self.found),
                [fault for _, fault in self.found],
            )


def in_a_line(fault: Exception) -> str:
    """A fault as its first line says it; a group as all of its faults, which its message names."""
    if isinstance(fault, ExceptionGroup):
        return fault.message
    return f"{type(fault).__name__}: {fault}".splitlines()[0]
