"""Wire between two virtual machines: a Unix domain socket that connects their network cards.

Bare-metal testboxes are connected by a cable, which needs no setup.
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

# Timeout for the socket, which QEMU creates within 0.1 s of its start.
SOCKET_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """Additional QEMU arguments for one guest.

    QEMU must not start before `socket` exists. If `socket` is None, no wait is needed.
    """

    argv: Sequence[str] = ()
    socket: Path | None = None

    def wait(self) -> None:
        """Wait until `socket` exists. Raises InfraError after SOCKET_SECONDS."""
        give_up = time.monotonic() + SOCKET_SECONDS
        while self.socket is not None and not self.socket.exists():
            if time.monotonic() > give_up:
                raise InfraError(
                    f"QEMU did not create its end of the wire ({self.socket}); see the server's "
                    "qemu.log. The wire needs QEMU 7.2 or later."
                )
            time.sleep(0.02)


def devices(driver: ClusterDriver, role: str, folder: Path) -> Devices:
    """Return the network card of one node.

    QEMU of the server listens on a socket in `folder`, and QEMU of the client connects to it.
    """
    if not driver.virtual:
        return Devices()
    socket = folder / "wire"
    end = (
        f"stream,id=wire,server={'on' if role == SERVER else 'off'},addr.type=unix,"
        f"addr.path={escaped(socket)}"
    )
    # No option ROM is needed, because no guest boots from this card.
    card = f"virtio-net-pci,netdev=wire,mac={driver.cards[role]},romfile="
    return Devices(
        argv=("-netdev", end, "-device", card), socket=None if role == SERVER else socket
    )
