"""One round of the brain: load, decide, record. Safe to stop at any line and to start again."""

from __future__ import annotations

from collections.abc import Callable

from swingbot.service.advance_bisections import advance_bisections
from swingbot.service.alert_operator import alert_operator
from swingbot.service.attribute_incidents import attribute_incidents, explain_swings
from swingbot.service.boot_anchors import boot_anchors
from swingbot.service.check_anchors import check_anchors
from swingbot.service.check_fixes import check_fixes
from swingbot.service.dispatch_orders import dispatch_orders, follow_dispatches
from swingbot.service.draft_followups import draft_followups
from swingbot.service.draft_reports import draft_reports
from swingbot.service.faults import Faults
from swingbot.service.ingest_outcomes import ingest_outcomes
from swingbot.service.judge_comparisons import judge_comparisons
from swingbot.service.keep_incidents import fold_sightings, identify_sightings
from swingbot.service.measure_noise import measure_noise
from swingbot.service.place_orders import place_comparisons, settle_orders
from swingbot.service.ports import Lab, Store
from swingbot.service.prove_culprits import extend_gates, judge_gates, open_gates
from swingbot.service.prove_swings import extend_comparisons, prove_swings, weigh_swings
from swingbot.service.request_comparison import compare_changes
from swingbot.service.send_digest import draft_digests
from swingbot.service.start_bisection import bisect_swings
from swingbot.service.watch_testboxes import screen_testboxes, watch_testboxes

Step = Callable[[Lab, Store], None]

# In the order in which one round can carry a thing furthest.
STEPS: tuple[tuple[str, Step], ...] = (
    ("measure noise", measure_noise),
    ("check anchors", check_anchors),
    (
        "extend comparisons",
        extend_comparisons,
    ),  # before they are judged: what is not settled is booted more
    ("extend gates", extend_gates),
    ("judge comparisons", judge_comparisons),
    ("weigh swings", weigh_swings),
    ("compare changes", compare_changes),
    ("identify sightings", identify_sightings),
    ("check fixes", check_fixes),
    (
        "fold sightings",
        fold_sightings,
    ),  # before the report: what was found since is told with the rest
    (
        "explain swings",
        explain_swings,
    ),  # before the report: an incident is explained once, between its comparison and its mail
    ("open gates", open_gates),
    ("judge gates", judge_gates),
    ("draft reports", draft_reports),
    ("draft followups", draft_followups),
    ("draft digests", draft_digests),
    ("attribute incidents", attribute_incidents),
    ("prove swings", prove_swings),
    ("bisect swings", bisect_swings),
    ("boot anchors", boot_anchors),
    (
        "watch testboxes",
        watch_testboxes,
    ),  # before orders are placed and handed out: what waits for a quarantined box may go on on another
    ("screen testboxes", screen_testboxes),
    ("place comparisons", place_comparisons),
    ("settle orders", settle_orders),
    ("follow dispatches", follow_dispatches),
    ("dispatch orders", dispatch_orders),
    ("alert operator", alert_operator),
)


def tick(lab: Lab) -> None:
    """Everything that can be decided now. Each step is a transaction of its own, and so is each outcome and each bisection.

    What fails leaves the rest of the round to be done. Raises ExceptionGroup at the end with all that failed; at once whatever a
    transaction raises that cannot even be begun, since the database is away then.
    """
    faults = Faults(lab)
    with faults.of("outcomes"):
        ingest_outcomes(lab, faults)
    with faults.of("settle orders"), lab.transaction("settle orders") as store:
        settle_orders(lab, store)
    with faults.of("bisections"):
        advance_bisections(lab, faults)
    for name, step in STEPS:
        with faults.of(name), lab.transaction(name) as store:
            step(lab, store)
    faults.tell()
