"""Look after the testboxes: controllers that fell silent, work that another box of the group can do, boxes that have to show their noise first."""

from __future__ import annotations

from typing import Final

from swingbot.core.model.box import WORKING, Barred, BoxState, Freed, Withdrawn
from swingbot.core.plan.alerts import MOVED
from swingbot.core.plan.boxes import (
    UNFIT,
    hardware,
    hardware_changes,
    lapsed,
    screening_boots,
    stand_in,
)
from swingbot.service.lab.anchors import compare_anchor
from swingbot.service.lab.move_testboxes import bar, gave_up
from swingbot.service.ports import Lab, Store
from swingbot_jobs.testbox.box import Testbox

# A lease that lapsed while we could not be reached says nothing: workers are given so long to be heard once we can be. They ask every 5 s.
SETTLE_SECONDS: Final = 30.0
CHANGED: Final = "its hardware changed: "
MOVABLE: Final = frozenset(
    {"asked", "watch"}
)  # comparisons that nothing else refers to by their testbox yet


def watch_testboxes(lab: Lab, store: Store) -> None:
    """Find lost controllers, set straight what a crash left, and let other boxes take over from those that are quarantined."""
    _find_lost(lab, store)
    _set_straight(lab, store)
    _hand_over(lab, store)


def _find_lost(lab: Lab, store: Store) -> None:
    lapses = store.lapsed_leases()
    if not lapses or lab.listening() < SETTLE_SECONDS:
        return
    for lapse in lapses:
        order, why = store.order(lapse.order), lapsed(lapse)
        assert order is not None
        store.bury_attempt(lapse.attempt, why)
        if order.state == "running":
            store.set_order(order.id, "ready")
        gave_up(lab, store, order, why, silent=True)


def _set_straight(lab: Lab, store: Store) -> None:
    """Make what a box does agree with whether it may work and whether an attempt has it."""
    reasons, leased, known = (
        store.testbox_reasons(),
        store.leased(),
        {box.testbox: box for box in store.boxes()},
    )
    for name in lab.testboxes:
        if name not in reasons:
            continue
        (wish, reason), box = reasons[name], known.get(name) or store.box(name)
        if name not in leased and box.state in WORKING:
            box = store.move_box(name, Withdrawn("its attempt is over"))
        if wish == "quarantined" and box.state is not BoxState.QUARANTINED:
            store.move_box(name, Barred(reason or "no reason was given"))
        elif wish != "quarantined" and box.state is BoxState.QUARANTINED:
            store.move_box(name, Freed("it may work again"))


def _hand_over(lab: Lab, store: Store) -> None:
    """Comparisons that wait for a quarantined box go on on another one of its group, from their first boot."""
    reasons = store.testbox_reasons()
    barred = [
        name
        for name, (state, why) in reasons.items()
        if state == "quarantined" and name in lab.testboxes and not (why or "").startswith(MOVED)
    ]
    if not barred:
        return
    lost = {box.testbox for box in store.boxes() if box.state is BoxState.LOST}
    fit = (
        {name for name, (state, _) in reasons.items() if state == "active"}
        - lost
        - unscreened(lab, store)
    )
    for comparison in store.open_comparisons():
        for name, spec in comparison.parts:
            other = (
                stand_in(lab.testboxes[name], lab.testboxes, fit)
                if name in barred and comparison.kind in MOVABLE
                else None
            )
            if other is not None and store.move_part(comparison.id, name, spec, other):
                store.note_box(
                    name,
                    "quarantined",
                    "quarantined",
                    f"{other} of its group takes over comparison c{comparison.id}",
                    None,
                )


def unscreened(lab: Lab, store: Store) -> set[str]:
    """Testboxes that have to show their noise before they may vote: they get boots of their anchor alone."""
    needing = [
        name for name, box in lab.testboxes.items() if screening_boots(box, lab.policies.boxes) > 0
    ]
    return {name for name in needing if not store.screening(name).screened}


def screen_testboxes(lab: Lab, store: Store) -> None:
    """Boot an anchor often enough on each box that is new or whose hardware changed; its noise record comes of that."""
    states = store.testbox_states()
    for name, box in lab.testboxes.items():
        wanted = screening_boots(box, lab.policies.boxes)
        store.ask_screening(name, wanted)
        if wanted > 0 and states.get(name) in ("active", "drained") and not _changed(store, box):
            _screen(store, name, wanted, active=states[name] == "active")


def _changed(store: Store, box: Testbox) -> bool:
    """Note what machine it is; True if it is another one than it was, so that it has to be screened anew."""
    known, now = (
        store.screening(box.name).hardware,
        hardware(box, store.latest_boot_facts(box.name)),
    )
    why = hardware_changes(known or {}, now)
    if known is None or why is not None or now.keys() - known.keys():
        store.box(box.name)  # there is a row from now on
        store.set_hardware(box.name, {**(known or {}), **now}, changed=why is not None)
    if why is None:
        return False
    _note(store, box.name, f"{CHANGED}{why}; it is screened anew")
    for anchor in store.anchors(box.name, "done"):
        store.mark_anchor(anchor.id, f"{CHANGED}{why}")
    return True


def _screen(store: Store, name: str, wanted: int, *, active: bool) -> None:
    found = store.screening(name)
    if found.screened:
        return
    if found.boots >= wanted:
        store.set_screened(name)
        _note(store, name, f"screened: {found.boots} boots of its anchor gave its noise record")
    elif active and not store.anchors(name, "waiting", "running"):
        if found.tried:
            bar(store, name, f"{UNFIT}{found.boots} of {wanted} boots of its anchor came up")
        elif kernel := store.anchor_kernel(name) or store.asked_kernel(name):
            compare_anchor(store, name, kernel, wanted)


def _note(store: Store, name: str, why: str) -> None:
    state = store.box(name).state.value
    store.note_box(name, state, state, why, None)
