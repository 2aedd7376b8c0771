"""Select the build workers for a kernel by the compilers that they announced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from swingbot.core.model.records import Order, WorkerCompiler
from swingbot_jobs.contract.compiler import FORM, is_compiler, order_of


def may_build(
    announced: Mapping[str, Sequence[WorkerCompiler]], worker: str, compiler: str
) -> bool:
    """Return True if a kernel for `compiler` may go to `worker`, given the announced compilers.

    A compiler that no worker has does not block a kernel: any worker takes the order, and its
    outcome says what is missing.
    """
    having = {
        name
        for name, compilers in announced.items()
        if any(one.name == compiler and one.problem is None for one in compilers)
    }
    return worker in having or not having


def may_retry(worker: str, tried: Collection[str], able: Collection[str]) -> bool:
    """Return False for a worker that `tried` an earlier attempt while another one is `able`."""
    return worker not in tried or set(able) <= set(tried)


def refusal(announced: Sequence[WorkerCompiler], compiler: str) -> str | None:
    """Return why no kernel can be built with `compiler`, with the alternatives; None if possible.

    As long as no worker has announced a compiler, only malformed names are refused.
    """
    if not is_compiler(compiler):
        return f"{compiler[:80]!r} is not a compiler name; use {FORM}"
    if not announced or any(one.name == compiler and one.problem is None for one in announced):
        return None
    broken = [one for one in announced if one.name == compiler]
    if broken:
        reasons = "; ".join(f"{one.worker}: {one.problem}" for one in broken)
        why = f"{compiler} cannot build kernels on any build worker ({reasons})"
    else:
        why = f"no build worker has {compiler}"
    return f"{why}; {_choice(announced)}"


def _choice(announced: Sequence[WorkerCompiler]) -> str:
    usable = sorted({one.name for one in announced if one.problem is None}, key=order_of)
    if not usable:
        return "no build worker has a usable compiler, see `swingbot compilers`"
    return f"available compilers: {', '.join(usable)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelQueue:
    """State of kernel builds for the queue. Each compiler has its own queue.

    Otherwise an absent worker would hold up kernels that other workers can build.
    """

    compilers: Mapping[int, str] = field(default_factory=dict)  # order -> compiler, open builds
    under_way: Mapping[str, int] = field(default_factory=dict)  # compiler -> builds handed out
    workers: Mapping[str, int] = field(default_factory=dict)  # compiler -> number of workers

    def key(self, order: Order) -> str:
        """Return the queue of a build order."""
        return self.compilers.get(order.id, "")

    def limit(self, order: Order, ahead: int) -> int:
        """Return the number of builds to hand out in the order's queue, `ahead` per worker."""
        return ahead * max(1, self.workers.get(self.key(order), 1))


def workers_by_compiler(announced: Sequence[WorkerCompiler]) -> dict[str, int]:
    """Return the number of workers for each compiler."""
    return dict(Counter(one.name for one in announced if one.problem is None))
