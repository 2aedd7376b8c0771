"""The content of a report as data, in the form in which it is stored and tested."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from swingbot.core.mail.message import PostedMail
from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.model.statuses import GateAnswer
from swingbot.core.proof.clues import Clue
from swingbot_jobs.codec import Count, Named


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    sha: Annotated[str, Named("commit")]
    subject: str
    author: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectionSummary:
    """The cost and the result of the search.

    `candidates` commits were searched with `boots` boots of `kernels` different kernels, of which
    `builds` were built for this bisection.
    """

    id: str
    candidates: Count
    boots: Count
    kernels: Count
    builds: Count
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One gate of proof.

    `name` is a word or two ("revert"). `reason` is a short phrase: why the gate passed, failed or
    was not run.
    """

    name: str
    status: GateAnswer
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigDiffers:
    """The difference between the kernel configurations of parent and commit.

    `symbols` have another value, one that is off in a kernel and unknown to the other left out;
    `asked` are those that the tree's configuration sets, as `CONFIG_X: y -> unknown`.
    """

    symbols: Count
    asked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFacts:
    """Content of the first mail about a culprit.

    The headline's numbers come from the boots that confirmed the culprit against its parent, `rows`
    from the comparison of the two over all jobs.
    `command` is the command line of the headline's program; `reproduce` are shell commands, one per
    line.
    `config_differs` is None if parent and commit have the same configuration, or it is unknown.
    `machine` is one line about the headline's testbox.
    `facts` (name to value, in print order) describe the environment: command line, root file
    system, THP and the like.
    `links` (name to URL): "page" is the report's own page and is printed first.
    `gates` are the gates of proof in print order; `clues` explain the change, best first; `boots`
    ("parent", "commit") are the ids of the headline's boots.
    `posted` is the mail that posted the patch. `merged` says whether others base their work on the
    culprit; None means unknown.
    `closes` is the URL under which this mail can be read. `regzbot` requests a line for that
    tracker, for merged regressions only.
    """

    report: str
    tree: str
    url: str
    branch: str
    culprit: Commit
    parent: str
    base: str
    head: str
    headline: ComparisonRow
    rows: tuple[ComparisonRow, ...] = ()
    bisection: BisectionSummary
    kconfig: str
    config_differs: ConfigDiffers | None = None
    compiler_version: str
    machine: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    reproduce: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    reporter: str
    contact: str
    gates: tuple[Gate, ...] = ()
    clues: tuple[Clue, ...] = ()
    boots: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    posted: PostedMail | None = None
    merged: bool | None = None
    closes: str = ""
    regzbot: bool = False
