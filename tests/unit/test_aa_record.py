"""When results of a testbox may leave the lab."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from swingbot.core.moderation.aa_record import AaRules, AnchorBoots, aa_record, why_restricted
from swingbot.core.plan.anchors import claims
from swingbot.core.stats.compare import BootRuns
from swingbot.core.stats.rules import rule_for

MONDAY, TUESDAY = date(2026, 11, 16), date(2026, 11, 17)
RULES = AaRules(pairs=20, days=2)


def anchor(number: int, *days: date, kernel: int = 1, mark: str | None = None) -> AnchorBoots:
    return AnchorBoots(anchor=number, kernel=kernel, days=days, mark=mark)


def why(*anchors: AnchorBoots, virtual: bool = False, rules: AaRules = RULES) -> str:
    return why_restricted("rack7", virtual=virtual, anchors=anchors, rules=rules)


def test_twenty_pairs_on_two_days_free_a_testbox_and_one_pair_less_does_not() -> None:
    night = [anchor(1, *[MONDAY] * 30), *(anchor(n, TUESDAY, TUESDAY) for n in range(2, 7))]
    assert why(*night) == ""
    assert "has 19 of 20 pairs of boots of one kernel, on 2 of 2 days" in why(*night[:-1])
    assert "20 of 20 pairs of boots of one kernel, on 1 of 2 days" in why(anchor(1, *[MONDAY] * 40))
    assert "0 of 20 pairs" in why() and "0 of 20 pairs" in why(anchor(1, MONDAY))


def test_pairs_of_two_kernels_are_not_added_up() -> None:
    two = anchor(1, *[MONDAY] * 20), anchor(2, *[TUESDAY] * 22, kernel=2)
    assert "has 11 of 20 pairs" in why(*two)


def test_a_marked_anchor_begins_the_record_again_and_is_named() -> None:
    early, late = anchor(1, *[MONDAY] * 40), anchor(3, TUESDAY, TUESDAY)
    assert why(early, late, anchor(4, MONDAY, TUESDAY)) == ""
    text = why(early, anchor(2, MONDAY, MONDAY, mark="moved: 4 % below"), late)
    assert "has 1 of 20 pairs" in text and "since anchor c2 (moved: 4 % below)" in text
    assert (aa_record([late, early]).anchor, aa_record([]).pairs) == (None, 0)


def test_no_pairs_asked_for_is_no_restriction() -> None:
    assert why(rules=AaRules(pairs=0)) == ""


@pytest.mark.parametrize(("named", "free"), [((), False), (("rack*",), True), (("vm-*",), False)])
def test_a_virtual_testbox_is_free_only_by_name(named: tuple[str, ...], free: bool) -> None:
    text = why(anchor(1, *[MONDAY] * 400), virtual=True, rules=AaRules(virtual=named))
    assert (text == "") is free
    assert free or "mail.virtual_testboxes" in text


def boots(values: list[float]) -> list[BootRuns]:
    return [BootRuns(k=k, values=(value,)) for k, value in enumerate(values)]


def test_boots_of_one_kernel_rarely_claim_a_change_and_halves_that_differ_do() -> None:
    rule, seeds = rule_for("benchmark", "higher", 2.0), 400
    false = sum(
        claims(boots(list(800 * np.exp(np.random.default_rng(n).normal(0, 0.01, 10)))), rule)
        is not None
        for n in range(seeds)
    )
    assert false <= 4  # 1 % of the seeds
    second = [800.0 + n + (40.0 if n % 4 in (1, 2) else 0.0) for n in range(10)]
    claim = claims(boots(second), rule)
    assert claim is not None and claim.startswith("two halves of 10 boots of one kernel are 5 %")
    assert claims(boots([800.0, 860.0]), rule) is None  # a single pair claims nothing
