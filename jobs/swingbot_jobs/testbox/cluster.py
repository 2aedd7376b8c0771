"""The driver `cluster`: two testboxes connected by a wire, a server and a client,
leased and booted together as one testbox.

Its file names the files of the two testboxes, which say how each is driven,
and adds only the wire. It is read strictly, like the rest of the file; the result is a
`ClusterDriver`.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from swingbot_jobs.testbox.definition import ClusterDriver, Testbox
from swingbot_jobs.testbox.ssh import SshDriver, parse_options
from swingbot_jobs.testbox.table import StrictTable
from swingbot_jobs.testbox.wire import (
    CLIENT,
    IPV4,
    IPV6,
    ROLES,
    SERVER,
    VIRTUAL_CARDS,
    VIRTUAL_NEEDS,
)

_MAC: Final = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){5}")
_INTERFACE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,14}")
# Keys of the individual testboxes that have no meaning for both together.
_OF_NODES: Final = (
    "perturbations",
    "cmdline",
    "can_set",
    "tuning",
    "tuning_without",
    "engine",
    "lkp",
    "repeatable",
)

FindNode = Callable[[str], Testbox | None]


def parse(table: StrictTable, find: FindNode) -> ClusterDriver:
    """Read the table `cluster` of a testbox file; `find` gives the testbox of a name.

    Raises TestboxError with file and line.
    """
    nodes = _nodes(table, find)
    virtual = nodes[SERVER].virtual
    wire = table.table("wire") if table.has("wire") else None
    needed = parse_options(table)
    driver = ClusterDriver(
        nodes=nodes,
        cards=VIRTUAL_CARDS if virtual else _cards(table, wire),
        ipv4=_addresses(wire, "ipv4", IPV4, ipaddress.IPv4Interface),
        ipv6=_addresses(wire, "ipv6", IPV6, ipaddress.IPv6Interface),
        kconfig_needed=tuple(dict.fromkeys((*VIRTUAL_NEEDS, *needed))) if virtual else needed,
    )
    if wire is not None:
        if virtual and wire.has("cards"):
            wire.refuse(
                "cards",
                "cards are for bare metal: QEMU gives its guests its own cards",
            )
        wire.done()
    table.done()
    return driver


def check(testbox: Testbox, driver: ClusterDriver, table: StrictTable) -> None:
    """Refuse settings of the cluster that contradict its testboxes."""
    for key in _OF_NODES:
        if table.has(key):
            table.refuse(
                key,
                f"{key} belongs in the files of the two testboxes, not in the cluster's",
            )
    client = driver.nodes[CLIENT]
    for key in ("nr_cpu", "memory_mb"):
        if getattr(testbox, key) != getattr(client, key):
            table.refuse(
                key,
                (
                    f"{key} is {getattr(testbox, key)}, but its client, testbox {client.name},"
                    f" has {getattr(client, key)}: shares in a job refer to the client"
                ),
            )
    for node in driver.nodes.values():
        if testbox.accepts == "untrusted" and node.accepts != "untrusted":
            table.refuse(
                "accepts",
                f"accepts is untrusted, but testbox {node.name} accepts trusted kernels only",
            )


def _nodes(table: StrictTable, find: FindNode) -> dict[str, Testbox]:
    inner = table.table("nodes")
    nodes: dict[str, Testbox] = {}
    for role in ROLES:
        name = inner.text(role)
        node = find(name)
        if node is None:
            inner.refuse(
                role,
                (
                    f"there is no testbox {name!r} in the directory of this file,"
                    " or this one is itself part of a cluster"
                ),
            )
        if why := _unfit(node):
            inner.refuse(role, f"testbox {name} {why}")
        nodes[role] = node
    inner.done()
    server, client = (nodes[role] for role in ROLES)
    if server.virtual != client.virtual:
        inner.refuse(
            CLIENT,
            (
                f"{server.name} and {client.name} cannot have a wire between them:"
                " one is a program on the worker's host, the other a machine"
            ),
        )
    if server.name == client.name and not server.virtual:
        inner.refuse(CLIENT, f"server and client are both {server.name}; a wire has two ends")
    return nodes


def _unfit(node: Testbox) -> str | None:
    """Return why a testbox cannot be an end of a wire; None if it can."""
    if not node.virtual and not isinstance(node.driver, SshDriver):
        return "has the driver command; the ends of a wire need qemu or ssh"
    if node.lkp is not None:
        return "has the engine lkp; a cluster needs the engine swingbot"
    if getattr(node.driver, "accel", "") == "icount":
        return (
            "has an instruction-count clock, and two such clocks do not agree;"
            " use one with accel tcg or kvm"
        )
    return None


def _cards(table: StrictTable, wire: StrictTable | None) -> dict[str, str]:
    if wire is None:
        table.refuse(
            "wire",
            (
                "wire is missing: name the card at each end,"
                " such as wire: {cards: {server: 3c:ec:ef:00:00:01, client: ...}}"
            ),
        )
    inner = wire.table("cards")
    cards = {}
    for role in ROLES:
        card = inner.text(role)
        if not _MAC.fullmatch(card.lower()) and not _INTERFACE.fullmatch(card):
            inner.refuse(
                role,
                (
                    f"{role} is {card!r}, must be a card's hardware address such as"
                    " 3c:ec:ef:00:00:01, or its name in the kernel under test"
                ),
            )
        cards[role] = card.lower() if _MAC.fullmatch(card.lower()) else card
    inner.done()
    return cards


def _addresses(
    wire: StrictTable | None, key: str, default: Mapping[str, str], kind: Callable[[str], Any]
) -> Mapping[str, str]:
    if wire is None or not wire.has(key):
        return default
    inner = wire.table(key)
    addresses = {role: inner.text(role) for role in ROLES}
    inner.done()
    try:
        ends = [kind(addresses[role]) for role in ROLES]
        if (
            any("/" not in text for text in addresses.values())
            or ends[0].network != ends[1].network
            or ends[0].ip == ends[1].ip
        ):
            raise ValueError
    except ValueError:
        wire.refuse(
            key,
            (
                f"{key} must have two addresses of one network, with the prefix length,"
                f" such as {{server: {default[SERVER]}, client: {default[CLIENT]}}}"
            ),
        )
    return addresses
