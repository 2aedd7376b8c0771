"""One round of the service loop: load, decide, record.

Safe to stop at any line and to start again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from swingbot.service.bisect.advance import advance_bisections
from swingbot.service.bisect.start import bisect_swings
from swingbot.service.detect.check_anchors import check_anchors
from swingbot.service.detect.measure_noise import measure_noise
from swingbot.service.detect.prove_swings import extend_comparisons, prove_swings, weigh_swings
from swingbot.service.faults import Faults
from swingbot.service.incident.attribute import attribute_incidents, explain_swings
from swingbot.service.incident.check_fixes import check_fixes
from swingbot.service.incident.keep import fold_sightings, identify_sightings
from swingbot.service.incident.versions import check_versions
from swingbot.service.kernel.foresee_builds import foresee_open_builds
from swingbot.service.lab.alert_operator import alert_operator
from swingbot.service.lab.anchors import boot_anchors
from swingbot.service.lab.load_testboxes import load_testboxes
from swingbot.service.lab.watch_testboxes import screen_testboxes, watch_testboxes
from swingbot.service.order.dispatch import dispatch_orders, follow_dispatches
from swingbot.service.order.give_up import give_up_arms
from swingbot.service.order.place import place_comparisons, settle_orders
from swingbot.service.ports import Lab, Transaction
from swingbot.service.prove.advance_gates import extend_gates, judge_gates, open_gates
from swingbot.service.report.draft_digests import draft_digests
from swingbot.service.report.draft_first import draft_reports
from swingbot.service.report.draft_followups import draft_followups
from swingbot.service.report.mail_results import mail_results
from swingbot.service.result.ingest import ingest_outcomes
from swingbot.service.table.changes import compare_changes
from swingbot.service.table.judge import judge_comparisons

Step = Callable[[Lab, Transaction], None]

HANDING_OUT: tuple[tuple[str, Step], ...] = (
    ("follow dispatches", follow_dispatches),
    ("dispatch orders", dispatch_orders),
)
# The order of a round carries everything as far as possible in one round: results are judged before
# they are reported, reports come before new requests, and orders are placed and dispatched last.
# Each step reads what earlier steps recorded; what only a later step enables waits for the next
# round.
BEFORE_JUDGING: tuple[tuple[str, Step], ...] = (
    # 1. Evaluate completed boots. Noise first: all thresholds below derive from it. Anchors next: a
    # testbox that moved judges nothing. Undecided comparisons get more boots before they are judged
    # for good.
    ("measure noise", lambda lab, tx: measure_noise(lab.catalogue, tx.noise)),
    ("check anchors", lambda lab, tx: check_anchors(lab.catalogue, tx)),
    (
        "extend comparisons",
        lambda lab, tx: extend_comparisons(lab.tools.git, lab.catalogue, lab.settings, tx),
    ),
    ("extend gates", lambda lab, tx: extend_gates(lab.catalogue, tx)),
)
FINDING: tuple[tuple[str, Step], ...] = (
    ("weigh swings", lambda lab, tx: weigh_swings(lab.tools.git, lab.catalogue, tx)),
    ("compare changes", compare_changes),
    # 2. Update each culprit. Sightings must fold into their incident before it is reported, so that
    # one mail covers all of them. An incident is explained once, between its comparison and its
    # mail, with the gates between the two.
    ("identify sightings", lambda lab, tx: identify_sightings(lab.tools.git, tx.sightings)),
    ("check versions", lambda lab, tx: check_versions(lab.tools.git, lab.catalogue, tx)),
    ("check fixes", lambda lab, tx: check_fixes(lab.tools.git, lab.catalogue, tx)),
    ("fold sightings", lambda lab, tx: fold_sightings(tx)),
    ("explain swings", lambda lab, tx: explain_swings(tx)),
    ("open gates", lambda lab, tx: open_gates(lab.tools, lab.catalogue, lab.settings, tx)),
    ("judge gates", judge_gates),
)
# 3. Draft mails, each in its own transaction: one that cannot be written keeps back no other.
MAILS: tuple[tuple[str, Callable[[Lab, Faults], None]], ...] = (
    ("draft reports", draft_reports),
    ("draft followups", draft_followups),
    ("mail results", mail_results),
)
REQUESTING: tuple[tuple[str, Step], ...] = (
    (
        "draft digests",
        lambda lab, tx: draft_digests(
            lab.catalogue.testboxes, lab.settings, lab.clock.now, tx.reports, tx.anchors
        ),
    ),
    # 4. Request the next measurements, most valuable first. An incident that is being attributed
    # may explain other swings: those are proven and bisected only if it does not.
    ("attribute incidents", lambda lab, tx: attribute_incidents(lab.tools.git, lab.catalogue, tx)),
    ("prove swings", lambda lab, tx: prove_swings(lab.tools.git, lab.catalogue, tx)),
    ("bisect swings", lambda lab, tx: bisect_swings(lab.tools.git, lab.catalogue, tx)),
    (
        "boot anchors",
        lambda lab, tx: boot_anchors(lab.catalogue.testboxes.present, lab.settings, tx),
    ),
    # 5. Assign work. Testboxes before orders: work that waits for a quarantined testbox may move to
    # another one of its group.
    ("watch testboxes", watch_testboxes),
    (
        "screen testboxes",
        lambda lab, tx: screen_testboxes(lab.catalogue.testboxes.present, lab.settings, tx),
    ),
    ("place comparisons", lambda lab, tx: place_comparisons(lab.catalogue.testboxes, tx)),
    (
        "settle orders",
        lambda lab, tx: settle_orders(
            lab.tools.artifacts, lab.catalogue.testboxes, lab.clock.now, tx
        ),
    ),
    (
        "give up arms",
        lambda lab, tx: give_up_arms(lab.catalogue.testboxes, tx),
    ),
    (
        "foresee builds",
        lambda lab, tx: foresee_open_builds(lab.tools.git, tx),
    ),
    *HANDING_OUT,
    # 6. Report lab problems that remain.
    ("alert operator", alert_operator),
)


def tick(lab: Lab) -> None:
    """Decide everything that can be decided now. Each step, outcome, bisection and mail has its own
    transaction.

    A fault does not stop the rest of the round. Raises ExceptionGroup at the end with all faults;
    raises at once if a transaction cannot even be started, since the database is unreachable then.

    Changes committed before the round began are marked as seen at its end, or all but one if there
    was a fault. If none is unseen and nothing is open, another round would do nothing
    (docs/decisions/0008-idle.md).
    """
    # Before loading anything for the round: loaded data is then at least as new as these changes.
    with lab.transaction("begin round") as tx:
        unseen = tx.rounds.unseen()
    lab = replace(lab, catalogue=load_testboxes(lab.transaction, lab.catalogue))
    faults = Faults(lab.transaction)

    def take(steps: Iterable[tuple[str, Step]]) -> None:
        for name, step in steps:
            with faults.of(name), lab.transaction(name) as tx:
                step(lab, tx)

    def take_in() -> None:
        with faults.of("outcomes"):
            ingest_outcomes(lab, faults)
        with faults.of("settle orders"), lab.transaction("settle orders") as tx:
            settle_orders(lab.tools.artifacts, lab.catalogue.testboxes, lab.clock.now, tx)

    def hand_out() -> None:
        take_in()
        take(HANDING_OUT)

    # Outcomes first: all decisions depend on them. Settle their orders before bisections look,
    # which would otherwise wait a round.
    take_in()
    with faults.of("bisections"):
        advance_bisections(lab, faults)
    take(BEFORE_JUDGING)
    with faults.of("judge comparisons"):
        judge_comparisons(lab, faults, hand_out)
    take(FINDING)
    for name, write in MAILS:
        with faults.of(name):
            write(lab, faults)
    take(REQUESTING)
    if unseen:
        with faults.of("end round"), lab.transaction("end round") as tx:
            tx.rounds.mark_seen(unseen[1:] if faults.found else unseen)
    faults.tell()
