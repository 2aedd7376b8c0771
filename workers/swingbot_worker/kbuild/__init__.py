"""Kernel builds: an order in, an image and an outcome out.

One source work tree per kernel version is switched in place, with one object directory per kconfig,
compiler and layout in it, so that the next commit costs what an incremental make costs; ccache stands
behind the compiler, and a finished build is kept and never made twice. See docs/decisions/ for why
tuxmake does not stand in between.
"""

from __future__ import annotations

from swingbot_worker.kbuild.build import build
from swingbot_worker.kbuild.by_hand import order_by_hand

__all__ = ["build", "order_by_hand"]
