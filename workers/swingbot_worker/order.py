"""An order as a worker carries it out: read once from its document (order-1 schema) into a frozen value.

Documents cross the line between master and worker and are checked there (`check_order`); behind that line each part of the worker is
given the value, or the parts of it that it needs. Seconds are of wall clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from swingbot_jobs.contract.orders import SEARCH
from swingbot_jobs.contract.trust import Trust, trust_of
from swingbot_jobs.contract.unit_job import UnitJob

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What orders of both kinds say. `attempt` is the key of start-or-attach: each attempt is carried out once."""

    kind: ClassVar[str]

    order: str  # as o12
    attempt: str  # as a34
    origin: str = "measured"
    deadline: float | None = None  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What goes into one kernel build."""

    repo: str
    commit: str
    kconfig: str
    compiler: str
    layout: int
    trust: Trust = "trusted"

    @property
    def object_directory(self) -> str:
        """Builds that share objects share this name. All layouts do: they differ in the last link only (see kbuild/layout.py)."""
        return f"o-{self.kconfig}-{self.compiler}-0"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOrder(Order):
    """Build one kernel. `build_key` is what the master calls it; what is built follows from `spec` alone."""

    kind: ClassVar[str] = "build"

    build_key: str
    spec: Spec

    @classmethod
    def from_json(cls, document: Document) -> Self:
        """Read a checked build order."""
        kernel = document["kernel"]
        names = ("repo", "commit", "kconfig", "compiler", "layout")
        spec = Spec(**{name: kernel[name] for name in names}, trust=trust_of(kernel.get("trust")))
        return cls(**_common(document), build_key=kernel["build_key"], spec=spec)


@dataclass(frozen=True, slots=True, kw_only=True)
class BootKernel:
    """The kernel of a boot order: an image by its path or by its sha256, and what is known of how it was built."""

    build_key: str
    image: Path | None
    image_sha256: str | None
    trust: Trust
    built_from: Mapping[str, str]  # commit, kconfig and compiler, as far as the order has them


@dataclass(frozen=True, slots=True, kw_only=True)
class BootOrder(Order):
    """Boot one kernel once on `testbox`, as its `k`-th boot for `purpose`, and run `unit_jobs` in it."""

    kind: ClassVar[str] = "boot"

    kernel: BootKernel
    testbox: str
    k: int
    purpose: str
    unit_jobs: tuple[UnitJob, ...]
    document: Document  # the order itself without its token, for a driver of the operator's

    @classmethod
    def from_json(cls, document: Document) -> Self:
        """Read a checked boot order."""
        kernel = document["kernel"]
        image = kernel.get("image")
        return cls(
            **_common(document),
            kernel=BootKernel(
                build_key=kernel["build_key"],
                image=Path(image).expanduser().absolute() if image is not None else None,
                image_sha256=kernel.get("image_sha256"),
                trust=trust_of(kernel.get("trust")),
                built_from={
                    name: kernel[name]
                    for name in ("commit", "kconfig", "compiler")
                    if kernel.get(name)
                },
            ),
            testbox=document["testbox"],
            k=document["k"],
            purpose=document.get("purpose", SEARCH),
            unit_jobs=tuple(UnitJob.from_json(job) for job in document["unit_jobs"]),
            document={name: value for name, value in document.items() if name != "exchange"},
        )

    def with_image(self, image: Path) -> Self:
        """The same order with the path of its image, once that is on this host."""
        kernel = {**self.document["kernel"], "image": str(image)}
        return self.from_json({**self.document, "kernel": kernel})


def order_of(document: Document) -> BuildOrder | BootOrder:
    """Read a checked order of either kind."""
    kinds: Mapping[str, type[BuildOrder] | type[BootOrder]] = {
        "build": BuildOrder,
        "boot": BootOrder,
    }
    return kinds[document["kind"]].from_json(document)


def _common(document: Document) -> dict[str, Any]:
    return {
        "order": document["order"],
        "attempt": document["attempt"],
        "origin": document.get("origin", "measured"),
        "deadline": document.get("deadline_seconds"),
    }
