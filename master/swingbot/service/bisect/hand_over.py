"""Boots of a bisection that wait for a quarantined testbox are asked on another one of its group.

The posterior gives each testbox of a group a level of its own, so the boots that were made stay
valid. Requests are moved one by one, since those that are observed or under way stay where they
are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from swingbot.core.model.bisection import WantedBoot
from swingbot.core.model.records import Bisection, Order, Variant
from swingbot.core.model.testbox_state import TestboxPhase
from swingbot.core.plan.queue import PRIORITY
from swingbot.core.plan.testbox_rules import stand_in
from swingbot.service.bisect.boot_keys import boot_key
from swingbot.service.kernel.variants import in_layout
from swingbot.service.lab.watch_testboxes import fit_testboxes, is_barred
from swingbot.service.order.place import want_boot
from swingbot.service.ports import Lab, Transaction


def hand_over(lab: Lab, tx: Transaction, bisection: Bisection, variants: Sequence[Variant]) -> None:
    """Move requested boots from quarantined testboxes to others, where one can take them."""
    if lab.catalogue.testboxes.known(bisection.testbox).repeatable:
        return  # its boots are compared at equal numbers, which two testboxes do not share
    reasons = tx.testboxes.reasons()
    barred = [
        index
        for index, name in enumerate(bisection.testboxes)
        if is_barred(lab.catalogue.testboxes.present, reasons, name)
    ]
    if not barred:
        return
    fit = fit_testboxes(lab.catalogue.testboxes.present, lab.settings, tx.testboxes)
    for index in barred:
        bisection = _hand_over(lab, tx, bisection, variants, index, fit)


def _hand_over(
    lab: Lab,
    tx: Transaction,
    bisection: Bisection,
    variants: Sequence[Variant],
    index: int,
    fit: set[str],
) -> Bisection:
    """Move the requests of testbox `index`; returns the bisection with its testboxes of now."""
    seen = {observation.key for observation in tx.bisections.observations(bisection.id)}
    wants = tx.bisections.wants(bisection.id)
    orders = {order.key: order for order in tx.orders.wanted(bisection=bisection.id)}
    waiting = [
        want
        for want in wants
        if want.testbox == index
        and want.key not in seen
        and want.phase != "history"
        and not _is_running(orders.get(_order_key(lab, tx, bisection, variants, want)))
    ]
    if not waiting:
        return bisection
    of_index = [want for want in wants if want.testbox == index]
    busy = Counter(want.testbox for want in wants if want.key not in seen)
    target, testboxes = _target(lab, bisection, index, fit, busy, all_=waiting == of_index)
    if target is None:
        return bisection
    moved = replace(bisection, terms=replace(bisection.terms, testboxes=testboxes))
    if testboxes != bisection.testboxes:
        tx.bisections.set_testboxes(bisection.id, testboxes)
        tx.testboxes.add_event(
            bisection.testboxes[index],
            TestboxPhase.QUARANTINED,
            TestboxPhase.QUARANTINED,
            f"{testboxes[target]} of its group takes over boots of bisection b{bisection.id}",
            None,
        )
    for want in waiting:
        before = orders.get(_order_key(lab, tx, bisection, variants, want))
        if before is not None:
            tx.orders.unwant(before.id, bisection=bisection.id)
        tx.bisections.move_want(bisection.id, *want.key, target)
        variant = in_layout(
            lab.catalogue.kconfigs, tx.trees, tx.variants, variants[want.idx], want.layout
        )
        key = boot_key(moved, variant, want.k, target)
        want_boot(tx.orders, variant, key, PRIORITY["bisection"], bisection=bisection.id)
    return moved


def _order_key(
    lab: Lab, tx: Transaction, bisection: Bisection, variants: Sequence[Variant], want: WantedBoot
) -> str:
    variant = in_layout(
        lab.catalogue.kconfigs, tx.trees, tx.variants, variants[want.idx], want.layout
    )
    return str(boot_key(bisection, variant, want.k, want.testbox))


def _is_running(order: Order | None) -> bool:
    return order is not None and order.state == "running"


def _target(
    lab: Lab, bisection: Bisection, index: int, fit: set[str], busy: Counter[int], *, all_: bool
) -> tuple[int | None, tuple[str, ...]]:
    """Return the index to move to, None if no testbox can take over, and the testboxes after it.

    `all_`: nothing was booted on testbox `index`. Another one then takes its place; the search
    would otherwise ask for the ends there again and again, since it has no level yet.
    """
    known = bisection.testboxes
    others = [place for place, name in enumerate(known) if name in fit]
    if others:
        place = min(others, key=lambda place: (busy[place], place))
        if not all_:
            return place, known
        return index, (*known[:index], known[place], *known[index + 1 :])
    other = stand_in(
        lab.catalogue.testboxes.present[known[index]], lab.catalogue.testboxes.present, fit
    )
    if other is None:
        return None, known
    if all_:
        return index, (*known[:index], other, *known[index + 1 :])
    return len(known), (*known, other)
