"""Which build worker may compile a kernel, by what the workers announced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from swingbot.core.model.records import Order, WorkerCompiler
from swingbot_jobs.contract.compiler import FORM, is_compiler, order_of


def may_build(
    announced: Mapping[str, Sequence[WorkerCompiler]], worker: str, compiler: str
) -> bool:
    """Whether a kernel that wants `compiler` may go to `worker`, by the list of each worker.

    A compiler that no worker has keeps no kernel waiting: any worker takes the order, and its
    outcome says what is missing there.
    """
    having = {
        name
        for name, compilers in announced.items()
        if any(one.name == compiler and one.problem is None for one in compilers)
    }
    return worker in having or not having


def refusal(announced: Sequence[WorkerCompiler], compiler: str) -> str | None:
    """Why no kernel can be built with `compiler`, and with which ones; None if one can.

    Nothing is refused but a malformed name while no worker has announced any compiler.
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
    """What the queue knows about kernel builds: each compiler has a queue of its own.

    A worker that is away would otherwise hold up the kernels that others could build meanwhile.
    """

    compilers: Mapping[int, str] = field(default_factory=dict)  # of open build orders, by order
    under_way: Mapping[str, int] = field(default_factory=dict)  # compiler -> builds handed out
    workers: Mapping[str, int] = field(default_factory=dict)  # compiler -> workers that have it

    def key(self, order: Order) -> str:
        """The queue of a build order."""
        return self.compilers.get(order.id, "")

    def limit(self, order: Order, ahead: int) -> int:
        """How many builds may be handed out in the order's queue, `ahead` to each worker."""
        return ahead * max(1, self.workers.get(self.key(order), 1))


def workers_by_compiler(announced: Sequence[WorkerCompiler]) -> dict[str, int]:
    """How many workers can build kernels with each compiler."""
    return dict(Counter(one.name for one in announced if one.problem is None))
