"""Gates of proof: each with a case where it passes and one where it fails, on figures worked out
by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest

from swingbot.app.settings import SettingsError, load
from swingbot.core.model.comparison_row import ComparisonRow, Points, Side, Verdict
from swingbot.core.model.statuses import GateStatus
from swingbot.core.proof import code, elsewhere, share
from swingbot.core.proof.clues import PairRows, clues
from swingbot.core.proof.gates import (
    GATES,
    BadGate,
    GateRow,
    decided,
    doubted,
    fit_to_leave,
    in_short,
    names,
    within_budget,
)
from swingbot.core.proof.series import series_end
from swingbot.core.proof.share import Effect, effect_of, keeps
from swingbot_jobs.kernel_diff import ChangedSymbol, CodeChange


def gate(name: str, status: GateStatus, reason: str = "because") -> GateRow:
    return GateRow(gate=name, status=status, reason=reason)


def all_passed(others: Mapping[str, GateStatus] | None = None) -> list[GateRow]:
    return [gate(name, (others or {}).get(name, "pass")) for name in GATES]


# -- when a mail may leave


def test_a_mail_whose_gates_all_passed_may_leave_by_itself() -> None:
    assert fit_to_leave(all_passed(), names("all")) is None


@pytest.mark.parametrize("name", ["code", "executed"])
def test_code_that_did_not_change_or_never_ran_makes_one_suspect_layout_or_noise(name: str) -> None:
    gates = all_passed({name: "fail"})
    assert doubted(gates) == [name]
    reason = fit_to_leave(gates, ())
    assert reason is not None
    assert reason.startswith("layout or noise suspected")
    assert name in reason


@pytest.mark.parametrize("name", ["reproduced", "tip", "series", "revert", "layout", "facts"])
def test_a_failed_gate_holds_a_mail_even_where_it_is_not_required(name: str) -> None:
    assert fit_to_leave(all_passed({name: "fail"}), ()) == f"{name} failed (because)"


def test_a_change_that_is_seen_nowhere_else_may_leave() -> None:
    assert fit_to_leave(all_passed({"elsewhere": "fail"}), ("reproduced",)) is None


def test_a_gate_that_was_not_run_holds_a_mail_only_where_it_is_required() -> None:
    gates = all_passed({"revert": "not run"})
    assert fit_to_leave(gates, ("tip",)) is None
    assert (
        fit_to_leave(gates, ("revert",)) == "required but not passed: revert was not run (because)"
    )
    assert (
        fit_to_leave([g for g in gates if g.gate != "tip"], ("tip",))
        == "required but not passed: tip was not run"
    )


def test_a_mail_waits_for_every_gate() -> None:
    assert not decided([])
    assert not decided(all_passed({"tip": "running"}))
    assert decided(all_passed({"tip": "not run", "code": "fail"}))


def test_lists_of_gates_are_checked_and_put_in_order() -> None:
    assert names(" code, reproduced ,") == ("reproduced", "code")
    assert names("all") == tuple(GATES)
    assert names("") == ()
    with pytest.raises(BadGate, match="'tipp' is not a gate; the gates are reproduced, tip"):
        names("tipp,code")


@pytest.mark.parametrize("key", ["GATES", "REQUIRE"])
def test_settings_name_gates_that_there_are(key: str) -> None:
    assert load(environ={f"SWINGBOT_PROOF_{key}": "tip, code"}) is not None
    with pytest.raises(SettingsError, match=f"proof.{key.lower()}: 'tipp' is not a gate"):
        load(environ={f"SWINGBOT_PROOF_{key}": "tipp"})


def test_a_budget_leaves_out_what_does_not_fit_and_says_so() -> None:
    foreseen = {"reproduced": 100.0, "tip": 50.0, "revert": 200.0, "layout": 600.0}
    out = within_budget(foreseen, 400.0)
    assert set(out) == {"layout"}
    assert out["layout"] == "would take about 10 min, and 50 s of proof.budget_minutes are left"
    assert set(within_budget(foreseen, 160.0)) == {"revert", "layout"}
    assert within_budget(foreseen, 0.0) == {}


# -- is it still there


def log(pct: float, half: float = 0.002) -> Effect:
    center = math.log1p(pct / 100.0)
    return Effect(log=center, low=center - half, high=center + half)


def test_the_whole_change_is_still_there() -> None:
    assert keeps(log(-17.3), log(-17.1)) == "yes"
    assert keeps(log(12.0), log(13.0)) == "yes"


def test_less_than_half_of_it_is_not() -> None:
    assert keeps(log(-17.3), log(-5.0)) == "no"
    assert keeps(log(-17.3), log(0.0)) == "no"


def test_the_other_direction_is_not() -> None:
    assert keeps(log(-17.3), log(17.3)) == "no"
    # 1 / 0.827: what taking it away gives back
    assert keeps(log(-17.3), log(20.9), turned=True) == "yes"
    assert keeps(log(-17.3), log(-17.3), turned=True) == "no"


def test_half_of_it_within_the_noise_is_unclear() -> None:
    half = 100 * math.expm1(math.log1p(-0.173) / 2)
    assert keeps(log(-17.3), log(half)) == "unclear"
    # hypot(0.15, 0.075) is more than half of 0.19
    assert keeps(log(-17.3, 0.15), log(-17.3, 0.15)) == "unclear"
    assert keeps(log(-17.3), Effect(log=-0.19, low=None, high=None)) == "unclear"


def test_the_combined_interval_is_that_of_the_difference() -> None:
    own, other = Effect(log=-0.2, low=-0.28, high=-0.12), Effect(log=-0.16, low=-0.19, high=-0.13)
    # u = 0.16 - 0.1 = 0.06, half = hypot(0.03, 0.04) = 0.05
    assert keeps(own, other) == "yes"
    assert keeps(own, Effect(log=-0.149, low=-0.179, high=-0.119)) == "unclear"


def test_a_gate_says_its_figures() -> None:
    answer = share.gate_result(log(-17.3), log(-17.1), "higher", what="other build layout: ")
    assert answer.status == "pass"
    assert (
        answer.reason
        == "other build layout: 17.1% worse (95% interval 16.93% to 17.27%), 99% of the commit's own 17.3%"
    )
    gone = share.gate_result(log(-17.3), log(-1.0), "higher")
    assert (gone.status, gone.detail["share"]) == (
        "fail",
        pytest.approx(math.log(0.99) / math.log(0.827)),
    )
    unclear = share.gate_result(log(-17.3, 0.2), log(-17.3, 0.2), "higher")
    assert unclear.status == "not run"
    assert unclear.reason.startswith("unclear: ")


def test_a_mail_says_of_what_passed_how_much_is_there_and_of_what_failed_all_figures() -> None:
    answer = share.gate_result(log(-17.3), log(-17.1), "higher")
    assert (
        in_short(
            GateRow(gate="reproduced", status="pass", reason=answer.reason, detail=answer.detail)
        )
        == "99% of it in another build layout"
    )
    assert (
        in_short(GateRow(gate="tip", status="fail", reason=answer.reason, detail=answer.detail))
        == answer.reason
    )
    assert in_short(gate("code", "pass")) == "because"


def row(pct: float | None, verdict: Verdict = "worse", **more: Any) -> ComparisonRow:
    facts: dict[str, Any] = {
        "testbox": "vm-icount",
        "unit_job": "netperf-UDP_STREAM",
        "metric": "netperf.Throughput_Mbps",
        "better": "higher",
        "klass": "kpi",
        "base": a_side(1000.0),
        "head": a_side(1000.0 * (1 + (pct or 0.0) / 100)),
        "interval_pct": None if pct is None else (pct - 0.2, pct + 0.2),
        "headline": True,
    }
    return ComparisonRow(change_pct=pct, verdict=verdict, **(facts | more))


def a_side(mean: float) -> Side:
    return Side(boots=3, runs=9, mean=mean, stddev=1.0)


@pytest.mark.parametrize(
    "bad", [None, row(None), row(-10.0, "invalid"), row(-100.0), row(float("nan"))]
)
def test_a_row_without_a_number_has_no_effect(bad: ComparisonRow | None) -> None:
    assert effect_of(bad) is None


def test_an_effect_without_an_interval_is_as_wide_as_can_be() -> None:
    found = effect_of(row(-10.0, interval_pct=None))
    assert found is not None
    assert math.isinf(found.half)


# -- series


def patch(number: int, thread: str = "20240102030405.77", tail: str = "dev@example.org") -> str:
    return f"mm: part {number}\n\nWhy.\n\nSigned-off-by: Dev <dev@example.org>\nLink: https://lore.kernel.org/r/{thread}-{number}-{tail}\n"


def test_a_series_ends_where_the_next_commit_is_of_another_thread() -> None:
    history = [
        ("a", patch(2)),
        ("b", patch(3)),
        ("c", patch(4)),
        ("d", patch(1, "20240109000000.5")),
        ("e", patch(5)),
    ]
    assert (series_end(history).commit, series_end(history).patches) == ("c", 3)


def test_the_last_patch_of_a_series_is_its_end() -> None:
    assert series_end([("a", patch(4)), ("b", "no link\n")]).commit == "a"


def test_patches_of_b4_are_one_series_too() -> None:
    history = [
        (name, patch(n, "20240102-pcp-v3", "0123456789ab@kernel.org"))
        for n, name in ((1, "a"), (2, "b"))
    ]
    assert series_end(history).commit == "b"


def test_numbers_that_fall_begin_another_posting() -> None:
    assert series_end([("a", patch(3)), ("b", patch(1))]).commit == "a"


@pytest.mark.parametrize(
    "message",
    [
        "",
        "no trailer",
        "x\n\nLink: https://lore.kernel.org/r/one.patch@example.org\n",
        "x\n\nLink: https://example.org/2-1-3@x\n",
    ],
)
def test_without_a_numbered_patch_no_series_is_known(message: str) -> None:
    end = series_end([("a", message), ("b", patch(2))])
    assert end.commit is None
    assert end.reason.startswith("no series known")
    assert series_end([]).commit is None


# -- code


def changed(name: str, base: int | None, head: int | None) -> ChangedSymbol:
    kind = "new" if base is None else "gone" if head is None else "changed"
    return ChangedSymbol(
        object="mm/page_alloc.o", name=name, kind=kind, what=("code",), base=base, head=head
    )


def change(
    functions: tuple[ChangedSymbol, ...] = (), data: tuple[ChangedSymbol, ...] = ()
) -> CodeChange:
    return CodeChange(functions=functions, data=data, renamed=(), objects=())


def test_changed_functions_pass_and_are_named_the_largest_difference_first() -> None:
    answer = code.gate_result(
        change(
            (
                changed("small", 100, 101),
                changed("free_unref_page", 276, 325),
                changed("same_size", 8, 8),
                changed("fresh", None, 64),
            )
        )
    )
    assert answer.status == "pass"
    assert (
        answer.reason
        == "4 functions: fresh new, 64 bytes, free_unref_page 276 to 325 bytes, small 100 to 101 bytes and 1 more"
    )
    assert answer.detail["functions_total"] == 4


def test_changed_data_alone_passes() -> None:
    answer = code.gate_result(change(data=(changed("table", 64, 64),)))
    assert (answer.status, answer.reason) == ("pass", "1 variable: table 64 bytes, size unchanged")


def test_a_commit_that_changes_no_code_fails() -> None:
    assert code.gate_result(change()).status == "fail"


# -- elsewhere


def place(testbox: str, found: ComparisonRow | None, **facts: str) -> elsewhere.TestboxResult:
    return elsewhere.TestboxResult(
        testbox=testbox, row=found, facts={"model": "Xeon", "CPUs": "8", **facts}
    )


def test_a_change_that_another_testbox_shows_is_seen_elsewhere() -> None:
    answer = elsewhere.gate_result(
        place("one", row(-17.0)),
        [place("two", row(-9.0)), place("three", row(-0.1, "same"), CPUs="1")],
    )
    assert answer.status == "pass"
    assert (
        answer.reason
        == "seen on two: 9.0% worse; not seen on three: no change (CPUs 1 instead of 8)"
    )


def test_a_change_that_no_other_testbox_shows_fails_and_says_what_sets_them_apart() -> None:
    answer = elsewhere.gate_result(
        place("one", row(-17.0)), [place("two", row(0.1, "same"), model="Atom")]
    )
    assert (answer.status, answer.detail["testboxes"][0]["apart"]) == (
        "fail",
        ["model Atom instead of Xeon"],
    )


def test_better_on_another_testbox_is_not_the_same_change() -> None:
    answer = elsewhere.gate_result(place("one", row(-17.0)), [place("two", row(5.0, "better"))])
    assert answer.status == "fail"
    assert answer.reason.startswith("in the opposite direction on two")


def test_testboxes_that_cannot_tell_are_no_answer() -> None:
    own = place("one", row(-17.0))
    assert elsewhere.gate_result(own, []).reason == "only one runs this job"
    assert (
        elsewhere.gate_result(
            own, [place("two", row(-3.0, "unclear")), place("three", None)]
        ).status
        == "not run"
    )


# -- clues


def counter(name: str, pct: float, verdict: Verdict = "changed", **more: Any) -> ComparisonRow:
    return row(
        pct, verdict, metric=name, better=None, headline=False, **({"klass": "counter"} | more)
    )


def test_counters_that_go_with_the_change_are_named_the_largest_first() -> None:
    rows = [row(-17.0), counter("pgfree", 5.0), counter("pcp_drains", 900.0)]
    assert [(clue.name, clue.words) for clue in clues(row(-17.0), rows, [], None)] == [
        ("pcp_drains", "1 000 to 10 000, 900.0% higher"),
        ("pgfree", "1 000 to 1 050, 5.0% higher"),
    ]


def test_a_counter_that_only_follows_the_amount_of_work_is_no_clue() -> None:
    assert clues(row(-17.0), [counter("packets", -17.5)], [], None) == ()


def test_a_counter_that_is_noise_or_hardly_moves_is_no_clue() -> None:
    noise = counter("irqs", 5.0, interval_pct=(-1.0, 11.0))
    assert (
        clues(row(-17.0), [noise, counter("forks", 1.0), counter("same", 5.0, "same")], [], None)
        == ()
    )


def test_a_clue_has_to_go_wherever_the_change_goes() -> None:
    rows = [counter("drains", 50.0), counter("luck", 50.0)]
    tip = PairRows(rows=[counter("drains", 45.0), counter("luck", -3.0)])
    reverted = PairRows(rows=[counter("drains", -33.0), counter("luck", -33.0)], turned=True)
    assert [clue.name for clue in clues(row(-17.0), rows, [tip, reverted], None)] == ["drains"]


def test_no_more_than_five_clues_and_room_for_the_code() -> None:
    gate = GateRow(
        gate="code",
        status="pass",
        detail={"functions": [{"name": "free", "object": "mm/a.o", "base": 100, "head": 150}]},
    )
    found = clues(row(-17.0), [counter(f"c{n}", 10.0 + n) for n in range(9)], [], gate)
    assert [clue.name for clue in found] == ["c8", "c7", "c6", "c5", "free"]
    assert found[-1].words == "100 to 150 bytes (50.0% more), in mm/a.o"


def test_a_share_counts_by_its_points() -> None:
    spin = counter(
        "spin_lock", 900.0, points=Points(change=18.0, interval=(17.0, 19.0)), klass="profile"
    )
    (clue,) = clues(row(-17.0), [spin], [], None)
    assert (clue.kind, clue.name) == ("symbol", "spin_lock")
