"""The Message-IDs of a series, and what its tables say of it together."""

from __future__ import annotations

from typing import Any

import pytest

from swingbot.core.mail.posting import series_ids
from swingbot.core.report.series_check import CheckResult, check_result

B4 = "<20260102-topic-v1-{}-0123456789ab@example.org>"
SEND_EMAIL = "<20260102030405.1234-{}-ada@example.org>"


@pytest.mark.parametrize(
    ("form", "own", "number", "numbers"),
    [
        (B4, 0, 0, [1, 2, 3]),
        (B4, 2, 2, [1, 2, 3]),
        (SEND_EMAIL, 1, 0, [2, 3, 4]),  # the cover letter is the first mail
        (SEND_EMAIL, 3, 2, [2, 3, 4]),
        (SEND_EMAIL, 2, 2, [1, 2, 3]),  # without a cover letter
        (B4, 1, 3, []),
        ("<{}@example.org>", 1, 1, []),
    ],
)
def test_a_numbered_mail_tells_its_series(
    form: str, own: int, number: int, numbers: list[int]
) -> None:
    assert series_ids(form.format(own), number, 3) == [form.format(one) for one in numbers]


def a_row(arm: int, verdict: str, **more: Any) -> dict[str, Any]:
    change = {"worse": -2.1, "better": 3.0}.get(verdict)
    return {
        "testbox": "lab1",
        "unit_job": "job",
        "metric": "x.ops",
        "against": "first",
        "arm": arm,
        "reference": 0,
        "counter": False,
        "alias_of": None,
        "better": "higher",
        "verdict": verdict,
        "change_pct": change,
        "margin_pct": 0.74,
        **more,
    }


def a_table(id_: str, *rows: dict[str, Any], status: str = "done", **arm: Any) -> dict[str, Any]:
    """The base, and kernels with one and with two patches."""
    made = {"state": "built", "reason": None, "boots": 5, "up": 5}
    commits = ("base", "one", "two")
    arms = [{"arm": at, "variant": {"commit": c}, **made} for at, c in enumerate(commits)]
    arms[2] |= arm
    progress = {"builds": 1, "builds_total": 3, "boots": 2, "boots_total": 15}
    return {
        "id": id_,
        "status": status,
        "reason": "no testbox",
        "arms": arms,
        "rows": list(rows),
        "progress": progress,
        "eta_seconds": 720.0,
        "waits": [],
    }


PLACES = {"one": 1, "two": 2}
SAME = a_row(2, "same")
OTHER = a_row(2, "same", testbox="lab2", unit_job="other", margin_pct=0.31)
SHARE = a_row(2, "same", unit_job="share", margin_pct=2.1, change_points=0.3)


@pytest.mark.parametrize(
    ("tables", "status", "summary"),
    [
        (
            [a_table("c1", SAME, OTHER)],
            "pass",
            "no change of 0.74 % or more in 2 tests on 2 testboxes",
        ),
        (
            [a_table("c1", SHARE)],
            "pass",
            "no change of 2.1 points or more in 1 test",
        ),
        ([a_table("c1", SAME, OTHER, SHARE)], "pass", "of 0.74 % or 2.1 points or more in 3 tests"),
        ([a_table("c1", a_row(2, "worse"))], "warn", "x.ops 2.1% worse on lab1"),
        ([a_table("c1", a_row(1, "worse"), SAME)], "pass", "no change of 0.74 % or more in 1 test"),
        ([a_table("c1", a_row(2, "worse", counter=True), SAME)], "pass", "no change of 0.74 %"),
        ([a_table("c2", SAME), a_table("c1", a_row(2, "worse"))], "pass", "no change of 0.74 %"),
        ([a_table("c1", a_row(2, "better"))], "pass", "x.ops 3.0% better on lab1"),
        ([a_table("c1", SAME, a_row(2, "unclear", unit_job="o"))], "warn", "; 1 test not clear"),
        ([a_table("c1", status="running")], "warn", "c1 is measuring: 1/3 kernels, 2/15 boots, 12"),
        ([a_table("c1", status="failed")], "warn", "c1 failed: no testbox"),
        ([a_table("c1", SAME, up=3)], "fail", "patch 2: 2 of 5 boots did not come up"),
        ([a_table("c1", state="failed", reason="e.c:1: error")], "fail", "does not build: e.c:1"),
        # against the row above: each patch counts
        (
            [a_table("c1", a_row(1, "worse", reference=0), a_row(2, "same", reference=1))],
            "warn",
            "no change of 0.74 % or more in 1 test on lab1",
        ),
    ],
)
def test_what_tables_say(tables: list[dict[str, Any]], status: str, summary: str) -> None:
    result = check_result(tables, PLACES, 2, "http://lab/comparison/c1")
    assert summary in result.summary and result.status == status, result
    assert result.to_json().keys() == {"tool", "status", "summary", "url", "details"}


def test_a_patch_is_not_blamed_for_a_base_that_does_not_build() -> None:
    table = a_table("c1", state="failed", reason="e.c:1: error")
    table["arms"][0] |= {"state": "failed", "reason": "e.c:1: error"}
    result = check_result([table], PLACES, 2, "http://lab/comparison/c1")
    assert (result.status, result.summary) == ("warn", "not measured")


def test_what_others_say_moves_no_cursor_where_b4_shows_it() -> None:
    odd = "bad \x1b[31m\u009b\u202e\n# x"
    told = CheckResult(status="fail", summary=odd, details=f"a  b\n{odd}\r").to_json()
    assert told["summary"] == "bad [31m # x"
    assert told["details"] == "a  b\nbad  [31m\n# x"
