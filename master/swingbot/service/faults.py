"""Collect the faults of a round, so that one fault does not stop the rest of the round."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from swingbot.service.ports.transaction import OpenTransaction


class Faults:
    """Collects exceptions, one part of the work at a time.

    If no transaction can be started after a fault (the database is unreachable), the rest of the
    round is skipped and the exception of the transaction reaches the caller.
    """

    def __init__(self, transaction: OpenTransaction) -> None:
        self._transaction = transaction
        self.found: list[tuple[str, Exception]] = []

    @contextmanager
    def of(self, what: str) -> Iterator[None]:
        """Run one part of the work; a fault in it is collected under the name `what`."""
        try:
            yield
        except Exception as fault:
            with self._transaction("look"):
                pass
            self.found.append((what, fault))

    def tell(self) -> None:
        """Raise an ExceptionGroup of all collected faults, if there are any.

        Its message names each part and its fault.
        """
        if self.found:
            raise ExceptionGroup(
                "; ".join(f"{what}: {in_a_line(fault)}" for what, fault in self.found),
                [fault for _, fault in self.found],
            )


def in_a_line(fault: Exception) -> str:
    """Return the first line of a fault. The message of a group lists all of its faults."""
    if isinstance(fault, ExceptionGroup):
        return fault.message
    return f"{type(fault).__name__}: {fault}".splitlines()[0]
