"""Kernel builds: an order in, an image and an outcome out.

Each kernel version has one source work tree, which is switched in place and holds one object
directory per kconfig, compiler and layout, so that the next commit needs only an incremental make.
The compiler runs under ccache, and a finished build is cached and never repeated. docs/decisions/
explains why swingbot does not use tuxmake.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swingbot_worker.kbuild.build_kernel import build, configured, not_accepted
    from swingbot_worker.kbuild.by_hand import order_by_hand

__all__ = ["build", "configured", "not_accepted", "order_by_hand"]


def __getattr__(name: str) -> Any:
    """Import on demand: the child that reads objects (`readers/`) needs some modules of many."""
    if name in ("build", "configured", "not_accepted"):
        from swingbot_worker.kbuild import build_kernel

        return getattr(build_kernel, name)
    if name == "order_by_hand":
        from swingbot_worker.kbuild.by_hand import order_by_hand

        return order_by_hand
    raise AttributeError(name)
