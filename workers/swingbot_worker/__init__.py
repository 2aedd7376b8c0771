"""Build kernels, drive testboxes and run jobs.

Imports the job language and nothing of the master.
"""

from __future__ import annotations


class InfraError(Exception):
    """An infrastructure failure: a missing tool, a full disk, an unreachable repository.

    The order is retried within its budget. The failure never counts for or against a kernel.

    The message is one sentence that states the problem and the remedy.
    """


class OrderError(InfraError):
    """This order can never be executed on this testbox, so a retry is useless.

    The testbox is healthy, and nothing was run on it.
    """
