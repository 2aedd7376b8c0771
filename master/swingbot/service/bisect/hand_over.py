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
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.core.plan.testbox_rules import stand_in
from swingbot.service.bisect.boot_keys import boot_key, order_boot
from swingbot.service.kernel.variants import in_layout
from swingbot.service.lab.watch_testboxes import fit_testboxes, is_barred
from swingbot.service.ports import Catalogue, LabSettings, Transaction
from swingbot_jobs.contract.kconfig import Kconfigs


def hand_over(
    catalogue: Catalogue,
    settings: LabSettings,
    tx: Transaction,
    bisection: Bisection,
    variants: Sequence[Variant],
) -> None:
    """Move requested boots from quarantined testboxes to others, where one can take them."""
    if catalogue.testboxes.known(bisection.testbox).repeatable:
        return  # its boots are compared at equal numbers, which two testboxes do not share
    reasons = tx.testboxes.reasons()
    barred = [
        index
        for index, name in enumerate(bisection.testboxes)
        if is_barred(catalogue.testboxes.present, reasons, name)
    ]
    if not barred:
        return
    fit = fit_testboxes(catalogue.testboxes.present, settings, tx.testboxes)
    seen = {observation.key for observation in tx.bisections.observations(bisection.id)}
    for index in barred:
        wants = tx.bisections.wants(bisection.id)
        of_index = [want for want in wants if want.testbox == index]
        waiting = _waiting(
            catalogue.kconfigs,
            tx,
            bisection,
            variants,
            [want for want in of_index if want.key not in seen],
        )
        if not waiting:
            continue
        busy = Counter(want.testbox for want in wants if want.key not in seen)
        all_ = len(waiting) == len(of_index)
        target, testboxes = _target(catalogue.testboxes, bisection, index, fit, busy, all_=all_)
        if target is None:
            continue
        for want, before in waiting:
            if before is not None:
                tx.orders.unwant(before.id, bisection=bisection.id)
            tx.bisections.move_want(bisection.id, *want.key, target)
        if testboxes != bisection.testboxes:
            tx.testboxes.add_event(
                bisection.testboxes[index],
                TestboxPhase.QUARANTINED,
                TestboxPhase.QUARANTINED,
                f"{testboxes[target]} of its group takes over boots of bisection b{bisection.id}",
                None,
            )
            tx.bisections.set_testboxes(bisection.id, testboxes)
            bisection = replace(bisection, terms=replace(bisection.terms, testboxes=testboxes))
        for want, _ in waiting:
            moved = replace(want, testbox=target)
            order_boot(catalogue.kconfigs, tx, bisection, variants[want.idx], moved)


def _waiting(
    kconfigs: Kconfigs,
    tx: Transaction,
    bisection: Bisection,
    variants: Sequence[Variant],
    wants: Sequence[WantedBoot],
) -> list[tuple[WantedBoot, Order | None]]:
    """Return those of `wants` that may move, with their order: neither under way, nor history."""
    orders = {order.key: order for order in tx.orders.wanted(bisection=bisection.id)}
    found = []
    for want in wants:
        variant = in_layout(kconfigs, tx.trees, tx.variants, variants[want.idx], want.layout)
        order = orders.get(str(boot_key(bisection, variant, want.k, want.testbox)))
        if want.phase != "history" and (order is None or order.state != "running"):
            found.append((want, order))
    return found


def _target(
    testboxes: KnownTestboxes,
    bisection: Bisection,
    index: int,
    fit: set[str],
    busy: Counter[int],
    *,
    all_: bool,
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
    other = stand_in(testboxes.present[known[index]], testboxes.present, fit)
    if other is None:
        return None, known
    if all_:
        return index, (*known[:index], other, *known[index + 1 :])
    return len(known), (*known, other)
