"""The wire of two virtual machines: a socket of this host's file system between two network cards.

Between bare-metal testboxes it is a cable, and nothing is to do.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from swingbot_jobs.testbox.definition import ClusterDriver
from swingbot_jobs.testbox.wire import SERVER
from swingbot_worker import InfraError
from swingbot_worker.testbox.qemu.argv import escaped

# QEMU binds its end in its first tenth of a second.
SOCKET_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """More arguments for one guest's QEMU.

    It must not be started before `socket` is there; None: it makes it itself, or there is none.
    """

    argv: Sequence[str] = ()
    socket: Path | None = None

    def wait(self) -> None:
        give_up = time.monotonic() + SOCKET_SECONDS
        while self.socket is not None and not self.socket.exists():
            if time.monotonic() > give_up:
                raise InfraError(
                    f"QEMU did not create its end of the wire ({self.socket}); see the server's "
                    "qemu.log. The wire needs QEMU 7.2 or later."
                )
            time.sleep(0.02)


def devices(driver: ClusterDriver, role: str, folder: Path) -> Devices:
    """The card of one end. The server's QEMU listens in `folder`, the client's connects."""
    if not driver.virtual:
        return Devices()
    socket = folder / "wire"
    end = f"stream,id=wire,server={'on' if role == SERVER else 'off'},addr.type=unix,addr.path={escaped(socket)}"
    # No ROM: nothing boots from this card.
    card = f"virtio-net-pci,netdev=wire,mac={driver.cards[role]},romfile="
    return Devices(
        argv=("-netdev", end, "-device", card), socket=None if role == SERVER else socket
    )
