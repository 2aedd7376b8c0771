"""One round of the brain: load, decide, record. Safe to stop at any line and to start again."""

from __future__ import annotations

from collections.abc import Callable

from swingbot.service.bisect.advance import advance_bisections
from swingbot.service.bisect.start import bisect_swings
from swingbot.service.compare.judge import judge_comparisons
from swingbot.service.compare.request import compare_changes
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
from swingbot.service.result.ingest import ingest_outcomes

Step = Callable[[Lab, Transaction], None]

# The order of a round, so that one round carries everything as far as it can: what came back is judged before it is told, what is
# told comes before what is asked next, and what is asked is placed and handed out last. Each step reads what the steps before it
# recorded; what only a later step makes possible waits for the next round.
STEPS: tuple[tuple[str, Step], ...] = (
    # 1. What the boots that came back show. Noise first: thresholds of everything below come from it. Anchors next: a testbox that
    # moved judges nothing. What is not settled gets more boots before it is judged for good.
    ("measure noise", measure_noise),
    ("check anchors", check_anchors),
    ("extend comparisons", extend_comparisons),
    ("extend gates", extend_gates),
    ("judge comparisons", judge_comparisons),
    ("weigh swings", weigh_swings),
    ("compare changes", compare_changes),
    # 2. What is known of each culprit. Sightings must fold into their incident before it is reported, so that one mail tells of
    # all of them; an incident is explained once, between its comparison and its mail, and gates stand between the two.
    ("identify sightings", identify_sightings),
    ("check versions", check_versions),
    ("check fixes", check_fixes),
    ("fold sightings", fold_sightings),
    ("explain swings", explain_swings),
    ("open gates", open_gates),
    ("judge gates", judge_gates),
    # 3. Mails about it.
    ("draft reports", draft_reports),
    ("draft followups", draft_followups),
    ("draft digests", draft_digests),
    # 4. What has to be measured next, dearest first. An incident that is being attributed explains other swings: those are
    # proven and bisected only if it does not.
    ("attribute incidents", attribute_incidents),
    ("prove swings", prove_swings),
    ("bisect swings", bisect_swings),
    ("boot anchors", boot_anchors),
    # 5. Who measures it. Testboxes before orders: work that waits for a quarantined box may move to another of its group.
    ("watch testboxes", watch_testboxes),
    ("screen testboxes", screen_testboxes),
    ("place comparisons", place_comparisons),
    ("settle orders", settle_orders),
    ("give up arms", give_up_arms),
    ("foresee builds", foresee_open_builds),
    ("follow dispatches", follow_dispatches),
    ("dispatch orders", dispatch_orders),
    # 6. What is wrong with the lab after all that.
    ("alert operator", alert_operator),
)


def tick(lab: Lab) -> None:
    """Everything that can be decided now. Each step is a transaction of its own, and so is each outcome and each bisection.

    What fails leaves the rest of the round to be done. Raises ExceptionGroup at the end with all that failed; at once whatever a
    transaction raises that cannot even be begun, since the database is away then.

    Changes that were committed before the round began are marked as seen at its end, all but one if something failed: when none is
    left unseen and nothing is open, another round would do nothing (docs/decisions/0008-idle.md).
    """
    # Before anything is loaded for the round: what is loaded is then at least as new as these changes.
    with lab.transaction("begin round") as tx:
        unseen = tx.rounds.unseen()
    lab = load_testboxes(lab)
    faults = Faults(lab)
    # Outcomes first: they decide what is known. Their orders are settled before bisections look, which would otherwise wait a round.
    with faults.of("outcomes"):
        ingest_outcomes(lab, faults)
    with faults.of("settle orders"), lab.transaction("settle orders") as tx:
        settle_orders(lab, tx)
    with faults.of("bisections"):
        advance_bisections(lab, faults)
    for name, step in STEPS:
        with faults.of(name), lab.transaction(name) as tx:
            step(lab, tx)
    if unseen:
        with faults.of("end round"), lab.transaction("end round") as tx:
            tx.rounds.mark_seen(unseen[1:] if faults.found else unseen)
    faults.tell()
