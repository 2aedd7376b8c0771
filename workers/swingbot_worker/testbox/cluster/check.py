"""Check the requirements of a cluster: both testboxes, and the wire between them."""

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

# First version with Unix domain sockets for network devices (-netdev stream, addr.type=unix).
QEMU_NEEDED: Final = (7, 2)
# Prints name, MAC address and carrier of each network card of the idle system. The carrier of a
# card that is down cannot be read.
_CARDS: Final = (
    "for d in /sys/class/net/*; do "
    'echo "${d##*/} $(cat $d/address) $(cat $d/carrier 2>/dev/null)"; done'
)


def check(driver: ClusterDriver, nodes: Mapping[str, Driver]) -> list[TuningFinding]:
    """Return the findings of each testbox, prefixed with role and name, and those of the wire.

    If both nodes use the same testbox file, it is checked once.
    """
    findings: list[TuningFinding] = []
    for name in driver.testboxes:
        roles = [role for role in ROLES if driver.nodes[role].name == name]
        node = driver.nodes[roles[0]]
        node_findings = nodes[roles[0]].check()
        if isinstance(node.driver, SshDriver) and all(
            finding.ok for finding in node_findings if finding.what.startswith("SSH")
        ):
            node_findings.append(_card(node, node.driver, driver.cards[roles[0]]))
        findings += [
            replace(finding, what=f"{' and '.join(roles)} {name}: {finding.what}")
            for finding in node_findings
        ]
    return [*findings, _qemu()] if driver.virtual else findings


def _card(node: Testbox, driver: SshDriver, card: str) -> TuningFinding:
    what = f"its end of the wire, {card}, exists"
    try:
        cards = Link(node.name, driver).run(_CARDS)
    except InfraError as error:
        return TuningFinding(what=what, ok=False, found="unknown", do=str(error))
    return card_in(what, card, cards)


def card_in(what: str, card: str, cards: str) -> TuningFinding:
    """Return the finding about `card`: whether it exists and, if known, has a carrier. Pure.

    `cards` has one line per card: name, MAC address, and carrier (0, 1 or nothing).
    """
    lines = [line.split() for line in cards.splitlines() if line.strip()]
    fields = next((words for words in lines if card in (words[0], *words[1:2])), None)
    if fields is None and ":" not in card:
        return TuningFinding(
            what=what,
            ok=True,
            found="not in the idle system, but the kernel under test may use other names",
        )
    if fields is None:
        present = ", ".join(" ".join(words[:2]) for words in lines)[:300]
        return TuningFinding(
            what=what,
            ok=False,
            found=f"missing; the cards are {present}",
            do="correct wire.cards in the cluster file",
        )
    if fields[2:3] == ["0"]:
        return TuningFinding(
            what=what,
            ok=False,
            found=f"{fields[0]}, without a carrier",
            do="plug in the cable at both ends",
        )
    return TuningFinding(
        what=what,
        ok=True,
        found=(
            f"{fields[0]}, "
            f"{'with a carrier' if fields[2:3] == ['1'] else 'down in the idle system'}"
        ),
    )


def _qemu() -> TuningFinding:
    try:
        version = process.output([argv.PROGRAM, "--version"], timeout=60).text.partition("\n")[0]
    except InfraError as error:
        return TuningFinding(what="QEMU supports the wire", ok=False, found="no", do=str(error))
    match = re.search(r"version (\d+)\.(\d+)", version)
    new_enough = match is not None and (int(match[1]), int(match[2])) >= QEMU_NEEDED
    return TuningFinding(
        what="QEMU supports the wire",
        ok=new_enough,
        found=version[:100],
        do="" if new_enough else "install QEMU 7.2 or later on this host",
    )
