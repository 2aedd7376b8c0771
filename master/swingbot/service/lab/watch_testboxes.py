"""Watch the testboxes: silent controllers, work that another testbox of the group can take over,
and testboxes that must show their noise first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from swingbot.core.model.records import Comparison
from swingbot.core.model.testbox_state import (
    WORKING,
    AttemptCancelled,
    Quarantined,
    Released,
    TestboxPhase,
)
from swingbot.core.plan.alerts import MOVED
from swingbot.core.plan.seen_hardware import whole
from swingbot.core.plan.testbox_rules import (
    UNFIT,
    Screening,
    expiry_reason,
    hardware,
    hardware_changes,
    screening_boots,
    stand_in,
)
from swingbot.service.lab.anchors import compare_anchor
from swingbot.service.lab.move_testboxes import bar, gave_up
from swingbot.service.ports import Clock, Lab, LabSettings, Transaction
from swingbot.service.ports.anchors import Anchors
from swingbot.service.ports.attempts import Attempts
from swingbot.service.ports.comparisons import Comparisons
from swingbot.service.ports.testboxes import Testboxes
from swingbot_jobs.testbox.definition import Testbox

# An expired lease means nothing if the web service was unreachable: workers get this long to report
# once it is reachable. They poll every 5 s.
SETTLE_SECONDS: Final = 30.0
CHANGED: Final = "its hardware changed: "
# Kinds of comparison that another testbox of the group can take over. (An anchor cannot: it is
# about its testbox.)
MOVABLE: Final = frozenset({"asked", "watch", "experiment", "prove", "still", "attribute", "gate"})
# Their rows are found without the name of a testbox after a move, so they must have only one.
_OF_ONE: Final = frozenset({"prove", "still", "attribute", "gate"})


def watch_testboxes(lab: Lab, tx: Transaction) -> None:
    """Find lost controllers, repair states after a crash, and let other testboxes take over from
    quarantined ones.
    """
    present = lab.catalogue.testboxes.present
    _find_lost(present, lab.settings, lab.clock, tx)
    _set_straight(present, tx.testboxes, tx.attempts)
    _hand_over(present, lab.settings, tx.testboxes, tx.comparisons)


def _find_lost(
    present: Mapping[str, Testbox], settings: LabSettings, clock: Clock, tx: Transaction
) -> None:
    lease_seconds = settings.testboxes.lease_seconds
    if clock.database.look(tx.attempts.clock()):
        tx.attempts.restart_leases(lease_seconds)  # whoever is silent loses it after that time
    lapses = tx.attempts.lapsed_leases(lease_seconds)
    if not lapses or min(clock.listening(), clock.database.since_step()) < SETTLE_SECONDS:
        return
    orders = tx.orders.by_number([lapse.order for lapse in lapses])
    for lapse in lapses:
        order, why = orders[lapse.order], expiry_reason(lapse)
        tx.attempts.declare_dead(lapse.attempt, why)
        if order.state == "running":
            tx.orders.set_state(order.id, "ready")
        gave_up(present, settings, tx.orders, tx.testboxes, order, why, silent=True)


def _set_straight(present: Mapping[str, Testbox], testboxes: Testboxes, attempts: Attempts) -> None:
    """Make the state of each testbox consistent with whether it may work and whether it has an
    attempt.
    """
    reasons, leased, known = (
        testboxes.reasons(),
        attempts.leased(),
        {testbox.testbox: testbox for testbox in testboxes.all()},
    )
    for name in present:
        if name not in reasons:
            continue
        (target, reason), testbox = reasons[name], known.get(name) or testboxes.lock(name)
        if name not in leased and testbox.state in WORKING:
            testbox = testboxes.move(name, AttemptCancelled("its attempt has ended"))
        if target == "quarantined" and testbox.state is not TestboxPhase.QUARANTINED:
            testboxes.move(name, Quarantined(reason or "no reason given"))
        elif target != "quarantined" and testbox.state is TestboxPhase.QUARANTINED:
            testboxes.move(name, Released("it may work again"))


def _hand_over(
    present: Mapping[str, Testbox],
    settings: LabSettings,
    testboxes: Testboxes,
    comparisons: Comparisons,
) -> None:
    """Move comparisons that wait for a quarantined testbox to another one of its group, starting
    from their first boot.
    """
    reasons = testboxes.reasons()
    barred = {name for name in reasons if is_barred(present, reasons, name)}
    if not barred:
        return
    fit = fit_testboxes(present, settings, testboxes)
    for comparison in comparisons.open():
        if not _movable(comparison):
            continue
        for name, spec in comparison.parts:
            other = stand_in(present[name], present, fit) if name in barred else None
            if other is not None and comparisons.move_part(comparison.id, name, spec, other):
                testboxes.add_event(
                    name,
                    TestboxPhase.QUARANTINED,
                    TestboxPhase.QUARANTINED,
                    f"{other} of its group takes over comparison c{comparison.id}",
                    None,
                )


def _movable(comparison: Comparison) -> bool:
    if comparison.kind not in MOVABLE:
        return False
    return comparison.kind not in _OF_ONE or len({name for name, _ in comparison.parts}) == 1


def is_barred(
    present: Mapping[str, Testbox], reasons: Mapping[str, tuple[str, str | None]], name: str
) -> bool:
    """Whether a testbox is quarantined, and not because its level moved: another one of its group
    can do its work.
    """
    state, why = reasons.get(name, ("", None))
    return state == "quarantined" and name in present and not (why or "").startswith(MOVED)


def fit_testboxes(
    present: Mapping[str, Testbox], settings: LabSettings, testboxes: Testboxes
) -> set[str]:
    """Return the testboxes that can take over work."""
    lost = {testbox.testbox for testbox in testboxes.all() if testbox.state is TestboxPhase.LOST}
    active = {name for name, (state, _) in testboxes.reasons().items() if state == "active"}
    return active - lost - unscreened(present, settings, testboxes)


def unscreened(
    present: Mapping[str, Testbox], settings: LabSettings, testboxes: Testboxes
) -> set[str]:
    """Return the testboxes that must show their noise before their results count: they get only
    anchor boots.
    """
    needing = [
        name
        for name, testbox in present.items()
        if screening_boots(testbox, settings.testboxes) > 0
    ]
    screenings = testboxes.screenings(needing)
    return {name for name, screening in screenings.items() if not screening.screened}


def screen_testboxes(
    present: Mapping[str, Testbox], settings: LabSettings, tx: Transaction
) -> None:
    """Boot an anchor often enough on each testbox that is new or has changed hardware, to obtain
    its noise record.
    """
    states = tx.testboxes.states()
    needed = {
        name: screening_boots(testbox, settings.testboxes) for name, testbox in present.items()
    }
    tx.testboxes.ask_screening(needed)
    names = [
        name
        for name, count in needed.items()
        if count > 0 and states.get(name) in ("active", "drained")
    ]
    screenings, facts = tx.testboxes.screenings(names), tx.boots.latest_facts_of(names)
    for name in names:
        now = hardware(present[name], whole(present[name], facts[name]))
        if not _changed(tx.testboxes, tx.anchors, name, screenings[name].hardware, now):
            _screen(tx, name, screenings[name], needed[name], active=states[name] == "active")


def _changed(
    testboxes: Testboxes,
    anchors: Anchors,
    testbox: str,
    known: Mapping[str, Any] | None,
    now: Mapping[str, Any],
) -> bool:
    """Record the hardware of a testbox.

    Returns True if it changed, so that the testbox has to be screened again.
    """
    why = hardware_changes(known or {}, now)
    if known is None or why is not None or now.keys() - known.keys():
        testboxes.lock(testbox)  # creates the row
        testboxes.set_hardware(testbox, {**(known or {}), **now}, changed=why is not None)
    if why is None:
        return False
    _note(testboxes, testbox, f"{CHANGED}{why}; it is screened again")
    for anchor in anchors.of_testbox(testbox, "done"):
        anchors.mark(anchor.id, f"{CHANGED}{why}")
    return True


def _screen(tx: Transaction, name: str, screening: Screening, needed: int, *, active: bool) -> None:
    if screening.screened:
        return
    if screening.boots >= needed:
        tx.testboxes.set_screened(name)
        _note(tx.testboxes, name, f"screened: {screening.boots} anchor boots gave its noise record")
    elif active and not tx.anchors.of_testbox(name, "waiting", "running"):
        if screening.tried:
            bar(tx.testboxes, name, f"{UNFIT}{screening.boots} of {needed} anchor boots came up")
        elif kernel := tx.anchors.kernel(name) or tx.anchors.asked_kernel(name):
            compare_anchor(tx.comparisons, tx.anchors, name, kernel, needed)


def _note(testboxes: Testboxes, name: str, why: str) -> None:
    state = testboxes.lock(name).state
    testboxes.add_event(name, state, state, why, None)
