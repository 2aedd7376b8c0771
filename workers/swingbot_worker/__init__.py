"""The hands: building kernels, driving testboxes, running jobs. Knows the job language, nothing of the master."""

from __future__ import annotations


class InfraError(Exception):
    """Our lab failed: a missing tool, a full disk, a repository out of reach. Retry within budget; never an observation, never a vote.

    The message is one sentence that says what is wrong and what to do about it.
    """


class OrderError(InfraError):
    """This order cannot be done on this testbox, however often it is tried; the testbox itself is well, and nothing was done on it."""
