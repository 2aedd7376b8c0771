"""Has a cluster what it needs: both of its boxes, and a wire between them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from swingbot_jobs.testbox.definition import ClusterDriver, Testbox
from swingbot_jobs.testbox.ssh import SshDriver
from swingbot_jobs.testbox.tuning import TuningFinding
from swingbot_jobs.testbox.wire import ROLES
from swingbot_worker import InfraError, process
from swingbot_worker.testbox.driver import Driver
from swingbot_worker.testbox.qemu import argv
from swingbot_worker.testbox.ssh.link import Link

# The first that has sockets of the file system for a wire (-netdev stream, addr.type=unix).
QEMU_NEEDED: Final = (7, 2)
# Each card of the idle system: its name, hardware address, and carrier, which cannot be read of one
# that is down.
_CARDS: Final = 'for d in /sys/class/net/*; do echo "${d##*/} $(cat $d/address) $(cat $d/carrier 2>/dev/null)"; done'


def check(driver: ClusterDriver, nodes: Mapping[str, Driver]) -> list[TuningFinding]:
    """What the driver of each box finds, with its role and name before it, and the wire; boxes that
    are one description are looked at once.
    """
    found: list[TuningFinding] = []
    for name in driver.boxes:
        roles = [role for role in ROLES if driver.nodes[role].name == name]
        node = driver.nodes[roles[0]]
        inner = nodes[roles[0]].check()
        if isinstance(node.driver, SshDriver) and all(
            finding.ok for finding in inner if finding.what.startswith("SSH")
        ):
            inner.append(_card(node, node.driver, driver.cards[roles[0]]))
        found += [
            replace(finding, what=f"{' and '.join(roles)} {name}: {finding.what}")
            for finding in inner
        ]
    return [*found, _qemu()] if driver.virtual else found


def _card(node: Testbox, driver: SshDriver, card: str) -> TuningFinding:
    what = f"its end of the wire, {card}, is there"
    try:
        cards = Link(node.name, driver).run(_CARDS)
    except InfraError as error:
        return TuningFinding(what=what, ok=False, found="unknown", do=str(error))
    return card_in(what, card, cards)


def card_in(what: str, card: str, cards: str) -> TuningFinding:
    """Whether `cards`, a line for each, has this one, and a carrier on it as far as that can be
    told. Pure.
    """
    lines = [line.split() for line in cards.splitlines() if line.strip()]
    mine = next((words for words in lines if card in (words[0], *words[1:2])), None)
    if mine is None and ":" not in card:
        return TuningFinding(
            what=what,
            ok=True,
            found="a name of the kernel under test, which the idle system need not have",
        )
    if mine is None:
        there = ", ".join(" ".join(words[:2]) for words in lines)[:300]
        return TuningFinding(
            what=what,
            ok=False,
            found=f"no; there are {there}",
            do="correct wire.cards of the cluster's file",
        )
    if mine[2:3] == ["0"]:
        return TuningFinding(
            what=what,
            ok=False,
            found=f"{mine[0]}, without a carrier",
            do="plug the cable in at both ends",
        )
    return TuningFinding(
        what=what,
        ok=True,
        found=f"{mine[0]}, {'with a carrier' if mine[2:3] == ['1'] else 'down in the idle system'}",
    )


def _qemu() -> TuningFinding:
    try:
        said = process.output([argv.PROGRAM, "--version"], timeout=60).text.partition("\n")[0]
    except InfraError as error:
        return TuningFinding(what="QEMU can make the wire", ok=False, found="no", do=str(error))
    match = re.search(r"version (\d+)\.(\d+)", said)
    good = match is not None and (int(match[1]), int(match[2])) >= QEMU_NEEDED
    return TuningFinding(
        what="QEMU can make the wire",
        ok=good,
        found=said[:100],
        do="" if good else "install QEMU 7.2 or later on this host",
    )
