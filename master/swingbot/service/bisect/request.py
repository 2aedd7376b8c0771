"""The request of a bisection, whoever asks for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from swingbot.core.access.roles import Person
from swingbot.core.model.records import JobFile
from swingbot.core.patchset.bundle import SentCommits


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectionRequest:
    """Request to find the commit between `good` and `bad` (in either order) that changed `metric`.

    Without `job_files`, the job files of the tree are used.
    """

    good: str
    bad: str
    metric: str
    tree: str | None = None  # None: the only tree with both ends
    testbox: str | None = None  # or a group; None: first of the tree that may boot the kernels
    unit_job: str | None = None  # None: the only one that reports the metric
    job_files: Sequence[JobFile] = ()
    overrides: Mapping[str, str] = field(default_factory=dict)
    trusted: bool = False  # the requester vouches for commits made from patches
    asked_by: Person | None = None  # over the web; None: an operator
    mail: bool = False  # to the requester, when it is over
    sent: SentCommits = field(default_factory=SentCommits)  # with the request
