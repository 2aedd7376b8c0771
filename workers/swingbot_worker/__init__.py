"""Build kernels, drive testboxes and run jobs.

Imports the job language and nothing of the master.
"""

from __future__ import annotations

from typing import ClassVar

from swingbot_jobs.contract.orders import Fault


class InfraError(Exception):
    """An infrastructure failure: a missing tool, a full disk, an unreachable repository.

    The order is retried within its budget. The failure never counts for or against a kernel.

    The message is one sentence that states the problem and the remedy. `fault` is that of the
    outcome: why the failure is not the testbox's.
    """

    fault: ClassVar[Fault | None] = None

    @property
    def of_outcome(self) -> dict[str, Fault]:
        """Return the fault as a part of the outcome."""
        return {"fault": self.fault} if self.fault else {}


class OrderError(InfraError):
    """This order can never be executed on this testbox, so a retry is useless.

    The testbox is healthy, and nothing was run on it.
    """

    fault = "order"


class LimitReached(InfraError):
    """A limit of ours ended the work."""

    fault = "limit"
