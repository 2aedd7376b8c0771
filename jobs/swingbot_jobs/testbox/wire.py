"""The wire between the two testboxes of a cluster: its ends by role, its addresses,
and the cards of virtual ends.

The addresses are from the blocks reserved for network benchmarks (RFC 2544, RFC 5180),
which are not routed.
"""

from __future__ import annotations

from typing import Final

SERVER: Final = "server"
CLIENT: Final = "client"
ROLES: Final = (SERVER, CLIENT)
# One testbox plays both roles, without a wire.
LOCALHOST: Final = "cs-localhost"
IPV4: Final = {SERVER: "198.18.0.1/30", CLIENT: "198.18.0.2/30"}
IPV6: Final = {SERVER: "2001:2::1/64", CLIENT: "2001:2::2/64"}
# Locally administered addresses that the driver `qemu` gives to its guests' cards.
VIRTUAL_CARDS: Final = {SERVER: "52:54:00:5b:00:01", CLIENT: "52:54:00:5b:00:02"}
VIRTUAL_NEEDS: Final = ("VIRTIO_NET", "VIRTIO_PCI", "INET")
