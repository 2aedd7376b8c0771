"""Look after the testboxes: controllers that fell silent, work that another box of the group can do, boxes that have to show their noise first."""

from __future__ import annotations

from typing import Final

from swingbot.core.model.testbox_state import (
    WORKING,
    AttemptCancelled,
    Quarantined,
    Released,
    TestboxPhase,
)
from swingbot.core.plan.alerts import MOVED
from swingbot.core.plan.testbox_rules import (
    UNFIT,
    expiry_reason,
    hardware,
    hardware_changes,
    screening_boots,
    stand_in,
)
from swingbot.service.lab.anchors import compare_anchor
from swingbot.service.lab.move_testboxes import bar, gave_up
from swingbot.service.ports import Lab, Transaction
from swingbot.service.ports.testboxes import Testboxes
from swingbot_jobs.testbox.definition import Testbox

# A lease that lapsed while we could not be reached says nothing: workers are given so long to be heard once we can be. They ask every 5 s.
SETTLE_SECONDS: Final = 30.0
CHANGED: Final = "its hardware changed: "
# comparisons that nothing else refers to by their testbox yet
MOVABLE: Final = frozenset({"asked", "watch"})


def watch_testboxes(lab: Lab, tx: Transaction) -> None:
    """Find lost controllers, set straight what a crash left, and let other boxes take over from those that are quarantined."""
    _find_lost(lab, tx)
    _set_straight(lab, tx)
    _hand_over(lab, tx)


def _find_lost(lab: Lab, tx: Transaction) -> None:
    lapses = tx.attempts.lapsed_leases()
    if not lapses or lab.listening() < SETTLE_SECONDS:
        return
    for lapse in lapses:
        order, why = tx.orders.get(lapse.order), expiry_reason(lapse)
        assert order is not None
        tx.attempts.declare_dead(lapse.attempt, why)
        if order.state == "running":
            tx.orders.set_state(order.id, "ready")
        gave_up(lab, tx, order, why, silent=True)


def _set_straight(lab: Lab, tx: Transaction) -> None:
    """Make what a box does agree with whether it may work and whether an attempt has it."""
    reasons, leased, known = (
        tx.testboxes.reasons(),
        tx.attempts.leased(),
        {box.testbox: box for box in tx.testboxes.all()},
    )
    for name in lab.testboxes.present:
        if name not in reasons:
            continue
        (wish, reason), box = reasons[name], known.get(name) or tx.testboxes.lock(name)
        if name not in leased and box.state in WORKING:
            box = tx.testboxes.move(name, AttemptCancelled("its attempt is over"))
        if wish == "quarantined" and box.state is not TestboxPhase.QUARANTINED:
            tx.testboxes.move(name, Quarantined(reason or "no reason was given"))
        elif wish != "quarantined" and box.state is TestboxPhase.QUARANTINED:
            tx.testboxes.move(name, Released("it may work again"))


def _hand_over(lab: Lab, tx: Transaction) -> None:
    """Comparisons that wait for a quarantined box go on on another one of its group, from their first boot."""
    reasons = tx.testboxes.reasons()
    barred = [
        name
        for name, (state, why) in reasons.items()
        if state == "quarantined"
        and name in lab.testboxes.present
        and not (why or "").startswith(MOVED)
    ]
    if not barred:
        return
    lost = {box.testbox for box in tx.testboxes.all() if box.state is TestboxPhase.LOST}
    fit = (
        {name for name, (state, _) in reasons.items() if state == "active"}
        - lost
        - unscreened(lab, tx.testboxes)
    )
    for comparison in tx.comparisons.open():
        for name, spec in comparison.parts:
            other = (
                stand_in(lab.testboxes.present[name], lab.testboxes.present, fit)
                if name in barred and comparison.kind in MOVABLE
                else None
            )
            if other is not None and tx.comparisons.move_part(comparison.id, name, spec, other):
                tx.testboxes.add_event(
                    name,
                    TestboxPhase.QUARANTINED,
                    TestboxPhase.QUARANTINED,
                    f"{other} of its group takes over comparison c{comparison.id}",
                    None,
                )


def unscreened(lab: Lab, testboxes: Testboxes) -> set[str]:
    """Testboxes that have to show their noise before they may vote: they get boots of their anchor alone."""
    needing = [
        name
        for name, box in lab.testboxes.present.items()
        if screening_boots(box, lab.policies.boxes) > 0
    ]
    return {name for name in needing if not testboxes.screening(name).screened}


def screen_testboxes(lab: Lab, tx: Transaction) -> None:
    """Boot an anchor often enough on each box that is new or whose hardware changed; its noise record comes of that."""
    states = tx.testboxes.states()
    for name, box in lab.testboxes.present.items():
        wanted = screening_boots(box, lab.policies.boxes)
        tx.testboxes.ask_screening(name, wanted)
        if wanted > 0 and states.get(name) in ("active", "drained") and not _changed(tx, box):
            _screen(tx, name, wanted, active=states[name] == "active")


def _changed(tx: Transaction, box: Testbox) -> bool:
    """Note what machine it is; True if it is another one than it was, so that it has to be screened anew."""
    known, now = (
        tx.testboxes.screening(box.name).hardware,
        hardware(box, tx.boots.latest_facts(box.name)),
    )
    why = hardware_changes(known or {}, now)
    if known is None or why is not None or now.keys() - known.keys():
        tx.testboxes.lock(box.name)  # there is a row from now on
        tx.testboxes.set_hardware(box.name, {**(known or {}), **now}, changed=why is not None)
    if why is None:
        return False
    _note(tx.testboxes, box.name, f"{CHANGED}{why}; it is screened anew")
    for anchor in tx.anchors.of_testbox(box.name, "done"):
        tx.anchors.mark(anchor.id, f"{CHANGED}{why}")
    return True


def _screen(tx: Transaction, name: str, wanted: int, *, active: bool) -> None:
    found = tx.testboxes.screening(name)
    if found.screened:
        return
    if found.boots >= wanted:
        tx.testboxes.set_screened(name)
        _note(
            tx.testboxes, name, f"screened: {found.boots} boots of its anchor gave its noise record"
        )
    elif active and not tx.anchors.of_testbox(name, "waiting", "running"):
        if found.tried:
            bar(tx.testboxes, name, f"{UNFIT}{found.boots} of {wanted} boots of its anchor came up")
        elif kernel := tx.anchors.kernel(name) or tx.anchors.asked_kernel(name):
            compare_anchor(tx, name, kernel, wanted)


def _note(testboxes: Testboxes, name: str, why: str) -> None:
    state = testboxes.lock(name).state
    testboxes.add_event(name, state, state, why, None)
