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
from dataclasses import dataclass, field
from typing import Any, Final

from swingbot_jobs.contract.kconfig import bare
from swingbot_jobs.testbox.definition import ClusterDriver, Testbox
from swingbot_jobs.testbox.ssh import Options, SshDriver
from swingbot_jobs.testbox.table import read, refuse
from swingbot_jobs.testbox.wire import (
    CLIENT,
    IPV4,
    IPV6,
    ROLES,
    SERVER,
    VIRTUAL_CARDS,
    VIRTUAL_NEEDS,
)
from swingbot_jobs.yaml_lines import LocatedValue

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ends:
    server: str
    client: str

    @property
    def by_role(self) -> dict[str, str]:
        return {SERVER: self.server, CLIENT: self.client}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wire:
    cards: _Ends | None = None
    ipv4: _Ends | None = None
    ipv6: _Ends | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cluster:
    """The table `cluster` as written."""

    nodes: _Ends
    wire: _Wire = field(default_factory=_Wire)
    kconfig_needed: Options = ()


def parse(table: LocatedValue, find: FindNode) -> ClusterDriver:
    """Read the table `cluster` of a testbox file; `find` gives the testbox of a name.

    Raises TestboxError with file and line.
    """
    given = read(_Cluster, table, "cluster")
    nodes = _nodes(table, given.nodes.by_role, find)
    virtual = nodes[SERVER].virtual
    if virtual and given.wire.cards:
        refuse(table, "cards are for bare metal: QEMU gives its guests its own cards", "wire")
    needed = bare(given.kconfig_needed)
    return ClusterDriver(
        nodes=nodes,
        cards=VIRTUAL_CARDS if virtual else _cards(table, given.wire.cards),
        ipv4=_addresses(table, "ipv4", given.wire.ipv4, IPV4, ipaddress.IPv4Interface),
        ipv6=_addresses(table, "ipv6", given.wire.ipv6, IPV6, ipaddress.IPv6Interface),
        kconfig_needed=tuple(dict.fromkeys((*VIRTUAL_NEEDS, *needed))) if virtual else needed,
    )


def check(testbox: Testbox, driver: ClusterDriver, table: LocatedValue) -> None:
    """Refuse settings of the cluster that contradict its testboxes."""
    for key in _OF_NODES:
        if key in (table.table or {}):
            why = f"{key} belongs in the files of the two testboxes, not in the cluster's"
            refuse(table, why, key)
    client = driver.nodes[CLIENT]
    for key in ("nr_cpu", "memory_mb"):
        if getattr(testbox, key) != getattr(client, key):
            refuse(
                table,
                f"{key} is {getattr(testbox, key)}, but its client, testbox {client.name},"
                f" has {getattr(client, key)}: shares in a job refer to the client",
                key,
            )
    for node in driver.nodes.values():
        if testbox.accepts == "untrusted" and node.accepts != "untrusted":
            why = f"accepts is untrusted, but testbox {node.name} accepts trusted kernels only"
            refuse(table, why, "accepts")


def _nodes(table: LocatedValue, names: Mapping[str, str], find: FindNode) -> dict[str, Testbox]:
    nodes: dict[str, Testbox] = {}
    for role, name in names.items():
        node = find(name)
        if node is None:
            refuse(
                table,
                f"there is no testbox {name!r} in the directory of this file,"
                " or this one is itself part of a cluster",
                *("nodes", role),
            )
        if why := _unfit(node):
            refuse(table, f"testbox {name} {why}", "nodes", role)
        nodes[role] = node
    server, client = (nodes[role] for role in ROLES)
    if server.virtual != client.virtual:
        refuse(
            table,
            f"{server.name} and {client.name} cannot have a wire between them:"
            " one is a program on the worker's host, the other a machine",
            *("nodes", CLIENT),
        )
    if server.name == client.name and not server.virtual:
        why = f"server and client are both {server.name}; a wire has two ends"
        refuse(table, why, "nodes", CLIENT)
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


def _cards(table: LocatedValue, cards: _Ends | None) -> dict[str, str]:
    if cards is None:
        refuse(
            table,
            "wire is missing: name the card at each end,"
            " such as wire: {cards: {server: 3c:ec:ef:00:00:01, client: ...}}",
        )
    for role, card in cards.by_role.items():
        if not _MAC.fullmatch(card.lower()) and not _INTERFACE.fullmatch(card):
            refuse(
                table,
                f"{role} is {card!r}, must be a card's hardware address such as"
                " 3c:ec:ef:00:00:01, or its name in the kernel under test",
                *("wire", "cards", role),
            )
    return {
        role: card.lower() if _MAC.fullmatch(card.lower()) else card
        for role, card in cards.by_role.items()
    }


def _addresses(
    table: LocatedValue,
    key: str,
    given: _Ends | None,
    default: Mapping[str, str],
    kind: Callable[[str], Any],
) -> Mapping[str, str]:
    if given is None:
        return default
    addresses = given.by_role
    try:
        ends = [kind(addresses[role]) for role in ROLES]
        if (
            any("/" not in text for text in addresses.values())
            or ends[0].network != ends[1].network
            or ends[0].ip == ends[1].ip
        ):
            raise ValueError
    except ValueError:
        refuse(
            table,
            f"{key} must have two addresses of one network, with the prefix length,"
            f" such as {{server: {default[SERVER]}, client: {default[CLIENT]}}}",
            *("wire", key),
        )
    return addresses
