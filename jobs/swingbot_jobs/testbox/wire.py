"""The wire between the two testboxes of a cluster: its ends by role, its addresses, and the cards of virtual ends.

The addresses are from the blocks that are set aside for benchmarks of networks (RFC 2544, RFC 5180), which nobody routes.
"""

from __future__ import annotations

from typing import Final

SERVER: Final = "server"
CLIENT: Final = "client"
ROLES: Final = (SERVER, CLIENT)
# One box plays both roles, without a wire.
LOCALHOST: Final = "cs-localhost"
IPV4: Final = {SERVER: "198.18.0.1/30", CLIENT: "198.18.0.2/30"}
IPV6: Final = {SERVER: "2001:2::1/64", CLIENT: "2001:2::2/64"}
# Of QEMU's cards, locally administered. The driver `qemu` gives them to its guests.
VIRTUAL_CARDS: Final = {SERVER: "52:54:00:5b:00:01", CLIENT: "52:54:00:5b:00:02"}
VIRTUAL_NEEDS: Final = ("VIRTIO_NET", "VIRTIO_PCI", "INET")
