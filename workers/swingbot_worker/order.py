"""An order as a worker executes it: a frozen value, parsed from its document (order-1 schema).

Documents pass between master and worker and are checked at that boundary (`check_order`). Inside
the worker, each part gets the value, or the fields that it needs. Seconds are wall-clock time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Self

from swingbot_jobs import codec
from swingbot_jobs.codec import Named
from swingbot_jobs.contract.orders import SEARCH, OrderKind
from swingbot_jobs.contract.trust import Trust
from swingbot_jobs.contract.unit_job import UnitJob

Document = Mapping[str, Any]
# Orders by hand, and those of masters that do not name a tree, share objects.
NO_TREE: Final = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderHeader:
    """The fields of both kinds of order.

    `attempt` is the key of start-or-attach: each attempt is executed once.
    """

    kind: ClassVar[OrderKind]

    order: str  # such as "o12"
    attempt: str  # such as "a34"
    origin: str = "measured"
    # seconds
    deadline: Annotated[float | None, Named("deadline_seconds")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """The inputs of one kernel build. `tree` says whose objects it may reuse, such as "t12"."""

    repo: str
    commit: str
    kconfig: str
    compiler: str
    layout: int
    trust: Trust = "trusted"
    tree: str = NO_TREE

    @property
    def object_directory(self) -> str:
        """Directory name that is common to builds that share objects.

        Layouts share objects, because they differ only in the final link
        (swingbot_jobs/code_layout.py).
        """
        return f"o-{self.kconfig}-{self.compiler}-0"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOrder(OrderHeader):
    """Build one kernel.

    `build_key` is the master's identifier; `spec` alone determines the build.
    """

    kind: ClassVar[OrderKind] = "build"

    build_key: str
    spec: Spec

    @classmethod
    def from_json(cls, document: Document) -> Self:
        """Parse a checked build order."""
        kernel = document["kernel"]
        given = {**document, "build_key": kernel["build_key"], "spec": kernel}
        return codec.typed(cls, given, ignore_unknown=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class BootKernel:
    """The kernel of a boot order: an image by path or sha256, and what is known about its build."""

    build_key: str
    image: Path | None = None
    image_sha256: str | None = None
    trust: Trust = "trusted"
    built_from: Mapping[str, str]  # commit, kconfig and compiler, if the order has them


@dataclass(frozen=True, slots=True, kw_only=True)
class BootOrder(OrderHeader):
    """Boot one kernel once on `testbox`, as its `k`-th boot for `purpose`; run `unit_jobs`."""

    kind: ClassVar[OrderKind] = "boot"

    kernel: BootKernel
    testbox: str
    k: int
    purpose: str = SEARCH
    unit_jobs: tuple[UnitJob, ...]
    document: Document  # the order without its token, for the operator's own driver

    @classmethod
    def from_json(cls, document: Document) -> Self:
        """Parse a checked boot order."""
        kernel = dict(document["kernel"])
        if kernel.get("image") is not None:
            kernel["image"] = str(Path(kernel["image"]).expanduser().absolute())
        names = ("commit", "kconfig", "compiler")
        kernel["built_from"] = {name: kernel[name] for name in names if kernel.get(name)}
        whole = {name: value for name, value in document.items() if name != "exchange"}
        return codec.typed(
            cls, {**document, "kernel": kernel, "document": whole}, ignore_unknown=True
        )

    def with_image(self, image: Path) -> Self:
        """Return this order with the path of its image on this host."""
        kernel = {**self.document["kernel"], "image": str(image)}
        return self.from_json({**self.document, "kernel": kernel})


def order_of(document: Document) -> BuildOrder | BootOrder:
    """Parse a checked order of either kind."""
    kinds: Mapping[str, type[BuildOrder] | type[BootOrder]] = {
        "build": BuildOrder,
        "boot": BootOrder,
    }
    return kinds[document["kind"]].from_json(document)
