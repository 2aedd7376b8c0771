"""What the form of a table offers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChoices:
    """Choices for one tree, on the testboxes that are chosen, or on its own."""

    trees: Sequence[str]
    testboxes: Sequence[str]
    jobs: Sequence[str]  # that all these testboxes can run
    tree: str = ""  # "": no tree is watched
    on: Sequence[str] = ()  # these testboxes
    refused: Mapping[str, str] = field(default_factory=dict)  # further jobs -> why not
    kernels: Sequence[Mapping[str, Any]] = ()  # as `read.kernel_names`
    problem: str = ""  # why something that is chosen is not among them
