"""The driver `cluster`: two testboxes with a wire between them, one to serve and one to ask, leased and booted together as one testbox.

Its file names the two by their own files, which say how each is driven; it adds the wire alone. This reads it, strictly, as the rest of the
file is read; the value that comes out is `box.ClusterDriver`.
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
# What belongs to the two testboxes and has no meaning for both together.
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
    """Read the table `cluster` of a testbox file; `find` gives the testbox of a name. Raises TestboxError with file and line."""
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
                "cards are of iron: QEMU gives its guests cards of its own",
            )
        wire.done()
    table.done()
    return driver


def check(box: Testbox, driver: ClusterDriver, table: StrictTable) -> None:
    """Refuse what the file says of both boxes and they do not."""
    for key in _OF_NODES:
        if table.has(key):
            table.refuse(
                key,
                f"{key} belongs into the files of the two testboxes, not into that of their cluster",
            )
    client = driver.nodes[CLIENT]
    for key in ("nr_cpu", "memory_mb"):
        if getattr(box, key) != getattr(client, key):
            table.refuse(
                key,
                f"{key} is {getattr(box, key)}, but its client, testbox {client.name}, has {getattr(client, key)}: shares of a job are of the client's",
            )
    for node in driver.nodes.values():
        if box.accepts == "untrusted" and node.accepts != "untrusted":
            table.refuse(
                "accepts",
                f"accepts is untrusted, but testbox {node.name} takes trusted kernels only",
            )


def _nodes(table: StrictTable, find: FindNode) -> dict[str, Testbox]:
    inner = table.table("nodes")
    found: dict[str, Testbox] = {}
    for role in ROLES:
        name = inner.text(role)
        node = find(name)
        if node is None:
            inner.refuse(
                role,
                f"there is no testbox {name!r} beside this file, or this one is itself part of a cluster",
            )
        if why := _unfit(node):
            inner.refuse(role, f"testbox {name} {why}")
        found[role] = node
    inner.done()
    server, client = (found[role] for role in ROLES)
    if server.virtual != client.virtual:
        inner.refuse(
            CLIENT,
            f"{server.name} and {client.name} cannot have a wire between them: one is a program on the worker's host, the other a machine",
        )
    if server.name == client.name and not server.virtual:
        inner.refuse(CLIENT, f"server and client are both {server.name}; a wire has two ends")
    return found


def _unfit(node: Testbox) -> str | None:
    """Why a testbox cannot be an end of a wire, in words; None if it can."""
    if not node.virtual and not isinstance(node.driver, SshDriver):
        return "has the driver command; the ends of a wire have qemu or ssh"
    if node.lkp is not None:
        return "has the engine lkp; a cluster's jobs are run by our own"
    if getattr(node.driver, "accel", "") == "icount":
        return "counts instructions for a clock: two such clocks do not go alike; take one with accel tcg or kvm"
    return None


def _cards(table: StrictTable, wire: StrictTable | None) -> dict[str, str]:
    if wire is None:
        table.refuse(
            "wire",
            "wire is missing: say which card of each box is at its end, as wire: {cards: {server: 3c:ec:ef:00:00:01, client: ...}}",
        )
    inner = wire.table("cards")
    found = {}
    for role in ROLES:
        card = inner.text(role)
        if not _MAC.fullmatch(card.lower()) and not _INTERFACE.fullmatch(card):
            inner.refuse(
                role,
                f"{role} is {card!r}, must be a card's hardware address as 3c:ec:ef:00:00:01, or its name in the kernel under test",
            )
        found[role] = card.lower() if _MAC.fullmatch(card.lower()) else card
    inner.done()
    return found


def _addresses(
    wire: StrictTable | None, key: str, default: Mapping[str, str], kind: Callable[[str], Any]
) -> Mapping[str, str]:
    if wire is None or not wire.has(key):
        return default
    inner = wire.table(key)
    found = {role: inner.text(role) for role in ROLES}
    inner.done()
    try:
        ends = [kind(found[role]) for role in ROLES]
        if (
            any("/" not in text for text in found.values())
            or ends[0].network != ends[1].network
            or ends[0].ip == ends[1].ip
        ):
            raise ValueError
    except ValueError:
        wire.refuse(
            key,
            f"{key} must have two addresses of one network, with the length of the prefix, as {{server: {default[SERVER]}, client: {default[CLIENT]}}}",
        )
    return found
