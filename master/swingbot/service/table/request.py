"""The request of a table of kernels, whoever asks for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from swingbot.core.access.roles import Person
from swingbot.core.limits import TABLE_ROWS
from swingbot.core.model.records import JobFile
from swingbot.core.model.statuses import Reference
from swingbot.core.patchset.bundle import SentCommits
from swingbot.core.table.layout import DEFAULT_BOOTS, Axis
from swingbot.service.table.kernels import KernelRequest

ALONE: Final = "me"  # in `private_to`: the requester, whose name it need not know


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRequest:
    """A requested table; without job files or testboxes, those of the tree are used."""

    kernels: KernelRequest
    tree: str | None = None  # None: the only tree with the commits
    axes: Sequence[Axis] = ()
    exclude: Sequence[Mapping[str, str]] = ()
    against: Sequence[Reference] = ()  # (): chosen to fit the kernels
    columns: Sequence[str] = ()
    job_files: Sequence[JobFile] = ()
    overrides: Mapping[str, str] = field(default_factory=dict)
    testboxes: Sequence[str] = ()
    boots: int = DEFAULT_BOOTS  # per row
    min_effect_pct: float | None = None  # smallest change of interest; None: that of the tree
    looks: int = 1  # how often the table may be judged, counting extensions
    # the requester vouches for the patches, and for existing commits made from patches
    vouched: bool = False
    most_rows: int = TABLE_ROWS
    asked_by: Person | None = None  # over the web; None: an operator
    sent: SentCommits = field(default_factory=SentCommits)  # with the request
    off_branch: bool = False  # over the web: it names commits that the tree's branch lacks
    # names of who may read it, beside the requester and operators; None: everybody
    private_to: Sequence[str] | None = None
    mail: bool = False  # to the requester, when the table is over
    kind: Literal["asked", "experiment"] = "asked"  # decides the letter of its id
