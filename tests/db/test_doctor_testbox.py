"""A doctor's night through the service: ordered once, shown, cancelled, answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from swingbot.app.cli import main
from swingbot.service.lab.anchors import compare_anchor
from swingbot_jobs.contract.unit_job import UnitJob
from tests.db.racks import RACK, ROOT, compared, environment, measured_brain, rows, workers
from tests.fakes.brain import Brain
from tests.served import served

ITEMS = ["aslr", "huge_pages", "nmi_watchdog"]
# Nothing tells a frequency; the list's demands are met.
FACTS: dict[str, Any] = {
    "kernel.randomize_va_space": 2,
    "kernel.nmi_watchdog": 1,
    "thp_enabled": "madvise",
    "thp_defrag": "madvise",
}


def under(job: UnitJob) -> tuple[float, float]:
    """Without huge pages the testbox is 6 % slower, without the watchdog's item it is noisier."""
    if "thp_enabled" in job.demand and job.demand["thp_enabled"] == "never":
        return 0.94, 1.0
    return 1.0, 12.0 if job.demand.get("kernel.nmi_watchdog") == "1" else 1.0


@pytest.fixture
def brain(tmp_path: Path, db_url: str, engine: sa.Engine) -> Iterator[Brain]:
    folder = workers(tmp_path / "workers", rack8="rack")
    (folder / "tuning").mkdir()
    items = (ROOT / "workers" / "tuning" / "quiet.yaml").read_text()
    (folder / "tuning" / "quiet.yaml").write_text(items)
    lacks = ("turbo", "epp", "clocksource", "heat", "neighbours", "swap", "numa_balancing")
    (folder / "testboxes" / "rack7.yaml").write_text(
        RACK.format(name="rack7", group="rack")
        + f"tuning: quiet\ntuning_without: [governor, {', '.join(lacks)}]\n"
    )
    with measured_brain(tmp_path, db_url, engine) as made:
        made.fake.facts |= FACTS
        made.fake.under, made.fake.settable = under, True
        yield made


@pytest.fixture
def swingbot(tmp_path: Path, db_url: str) -> Any:
    def ask(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(main, ("testbox", *words), env=environment(tmp_path, db_url))
        return result.exit_code, result.output

    return ask


def test_what_each_item_is_worth_is_planned_ordered_once_and_answered(
    brain: Brain, swingbot: Any, tmp_path: Path, db_url: str
) -> None:
    assert "no kernel is known" in swingbot("doctor", "rack7")[1]
    compared(brain, "rack7")
    with brain.lab.transaction("boot an anchor") as tx:
        known = tx.anchors.asked_kernel("rack7")
        assert known is not None
        compare_anchor(tx.comparisons, tx.anchors, "rack7", known, 2)
    brain.run()
    before = json.loads(swingbot("show", "rack7", "--json")[1])
    code, plan = swingbot("doctor", "rack7", "--dry-run")
    assert code == 0 and "with the whole tuning list and " in plan and "\nover in " in plan, plan
    assert f"without each of {', '.join(ITEMS)}" in plan
    assert "not switched: governor, turbo, epp: no frequency driver\n" in plan
    assert "not switched: audit, mitigations: its driver cannot set words" in plan
    assert not rows(brain, "SELECT 1 FROM comparison WHERE purpose = 'doctor'")

    asked = json.loads(swingbot("doctor", "rack7", "--json")[1])
    assert asked["plan"]["items"] == ITEMS and asked["plan"]["boots"] == 4 * 20
    assert (asked["doctor"]["status"], asked["doctor"]["boots"]) == ("waiting", 80)
    again = json.loads(swingbot("doctor", "rack7", "--again", "--json")[1])
    assert (again["doctor"]["id"], again["plan"]) == (asked["doctor"]["id"], None)
    said = swingbot("doctor", "rack7")[1]
    assert "0 of 80 boots are over" in said and "\nover in " in said
    code, said = swingbot("screen", "rack7")
    assert code == 2 and "is under way on testbox rack7: wait for it" in said

    brain.run()
    answer = json.loads(swingbot("show", "rack7", "--json")[1])["doctor"]["answer"]
    assert answer["boots"] == 80 and [one["item"] for one in answer["items"]] == ITEMS
    named = {one["item"]: one["metrics"][0]["named"] for one in answer["items"]}
    assert named == {"aslr": [], "huge_pages": ["level"], "nmi_watchdog": ["spread"]}
    thp = answer["items"][1]["metrics"][0]["level_pct"]
    assert thp["low"] < -6.0 < thp["high"] < -5.0
    assert answer["items"][1]["boot_seconds"] == {"value": 0.0, "low": 0.0, "high": 0.0}
    assert answer["skipped"][0] == "governor, turbo, epp: no frequency driver"
    said = swingbot("doctor", "rack7")[1]
    assert "without huge_pages: vm-page-fault" in said and "a boot takes +0 s" in said
    assert "  not switched: governor, turbo, epp: no frequency driver" in said
    assert "without huge_pages" in swingbot("show", "rack7")[1]
    place = {"SWINGBOT_PATHS_WORKERS": str(tmp_path / "workers")}
    with served(db_url, tmp_path / "web", filled=False, **place) as web:
        page = web.client.get("/testbox/rack7").text
        assert web.client.get(f"/comparison/{asked['doctor']['id']}").status_code == 200
    assert "What its tuning is worth" in page and "Without huge_pages: vm-page-fault" in page
    # Boots that lack an item are no noise of the testbox, no A/A pairs and no anchor.
    after = json.loads(swingbot("show", "rack7", "--json")[1])
    for key in ("aa_record", "anchors", "night"):
        assert after[key] == before[key]
    assert [one["boots"] for one in after["noise"]] == [one["boots"] for one in before["noise"]]
    assert not rows(brain, "SELECT 1 FROM comparison_row WHERE comparison = :c", c=_number(asked))


def _number(asked: dict[str, Any]) -> int:
    return int(asked["doctor"]["id"][1:])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("nowhere",), "testbox 'nowhere' does not exist"),
        (("vm-icount",), "testbox vm-icount counts instructions"),
        (("rack8",), "testbox rack8 has no tuning list: name one in its file"),
        (("rack7", "--hours", "0.1"), "boots with the shortest runs take"),
    ],
)
def test_a_night_that_cannot_be_is_refused_with_a_sentence(
    brain: Brain, swingbot: Any, words: tuple[str, ...], sentence: str
) -> None:
    compared(brain, "rack7", "rack8")
    code, said = swingbot("doctor", *words)
    assert code == 2 and sentence in said


def test_a_cancelled_night_may_begin_again(
    brain: Brain, swingbot: Any, tmp_path: Path, db_url: str
) -> None:
    compared(brain, "rack7")
    first = json.loads(swingbot("doctor", "rack7", "--json")[1])["doctor"]["id"]
    env = environment(tmp_path, db_url)
    assert CliRunner().invoke(main, ["cancel", first], env=env).exit_code == 0
    assert "cancelled by hand" in swingbot("show", "rack7")[1]
    second = json.loads(swingbot("doctor", "rack7", "--json")[1])["doctor"]["id"]
    assert second != first
