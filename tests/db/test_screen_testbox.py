"""A night on a testbox through the service: ordered once, shown, cancelled, answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from swingbot.app.cli import main
from tests.db.racks import change, compared, environment, measured_brain, rows
from tests.fakes.brain import Brain
from tests.served import served


@pytest.fixture
def brain(tmp_path: Path, db_url: str, engine: sa.Engine) -> Iterator[Brain]:
    with measured_brain(tmp_path, db_url, engine) as made:
        yield made


@pytest.fixture
def swingbot(tmp_path: Path, db_url: str) -> Any:
    def ask(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(main, words, env=environment(tmp_path, db_url))
        return result.exit_code, result.output

    return ask


def test_a_night_is_planned_ordered_once_and_answered(
    brain: Brain, swingbot: Any, tmp_path: Path, db_url: str
) -> None:
    assert swingbot("testbox", "screen", "rack7")[0] == 2  # no kernel is known there
    compared(brain, "rack7")
    code, plan = swingbot("testbox", "screen", "rack7", "--dry-run")
    assert code == 0 and " boots of " in plan and " on rack7, " in plan and "\nover in " in plan
    assert not rows(brain, "SELECT 1 FROM comparison WHERE purpose = 'screen'")

    asked = json.loads(swingbot("testbox", "screen", "rack7", "--json")[1])
    assert asked["plan"]["boots"] >= 40 and asked["night"]["status"] == "waiting"
    again = json.loads(swingbot("testbox", "screen", "rack7", "--json")[1])
    assert (again["night"]["id"], again["plan"]) == (asked["night"]["id"], None)
    shown = swingbot("testbox", "screen", "rack7", "--again")[1]
    assert "0 of " in shown and "`swingbot cancel " in shown
    assert swingbot("cancel", asked["night"]["id"])[1] == f"{asked['night']['id']} is cancelled\n"
    assert "cancelled by hand" in swingbot("testbox", "show", "rack7")[1]

    code, said = swingbot("testbox", "screen", "rack7")
    assert code == 0 and "is queued: `swingbot testbox screen rack7` shows it" in said
    brain.run()
    code, answer = swingbot("testbox", "screen", "rack7")
    assert code == 0 and "of page-fault.per_process_ops with 5 boots a side" in answer
    assert "modes: no; noise of the day: 0." in answer and answer.splitlines()[1:2]
    assert answer.splitlines()[1] in swingbot("testbox", "show", "rack7")[1]
    assert rows(brain, "SELECT 1 FROM noise_record WHERE testbox = 'rack7'")
    place = {"SWINGBOT_PATHS_WORKERS": str(tmp_path / "workers")}
    with served(db_url, tmp_path / "web", filled=False, **place) as web:
        page = web.client.get("/testbox/rack7").text
    assert "What it resolves" in page and "of page-fault.per_process_ops with 5 boots" in page
    assert "Mail: the A/A record of rack7 has" in page
    # It counts for the A/A record.
    record = json.loads(swingbot("testbox", "show", "rack7", "--json")[1])["aa_record"]
    assert record["pairs"] >= 20 and "on 1 of 2 days" in record["restricted"]
    change(
        brain,
        "UPDATE boot SET booted_at = booted_at - interval '1 day' WHERE id % 2 = 0",
    )
    record = json.loads(swingbot("testbox", "show", "rack7", "--json")[1])["aa_record"]
    assert record["restricted"] is None


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("nowhere",), "testbox 'nowhere' does not exist"),
        (("vm-icount",), "testbox vm-icount counts instructions"),
        (("rack8",), "no kernel is known for testbox rack8: watch a tree there first"),
        (("rack8", "--hours", "0"), "0.0 is not in the range"),
    ],
)
def test_a_night_that_cannot_be_is_refused_with_a_sentence(
    brain: Brain, swingbot: Any, words: tuple[str, ...], sentence: str
) -> None:
    code, said = swingbot("testbox", "screen", *words)
    assert code == 2 and sentence in said


def test_a_testbox_out_of_service_and_too_few_hours_are_refused(
    brain: Brain, swingbot: Any
) -> None:
    compared(brain, "rack7")
    assert "--hours" in swingbot("testbox", "screen", "rack7", "--hours", "0.1")[1]
    swingbot("testbox", "drain", "rack7", "--reason", "new disk")
    code, said = swingbot("testbox", "screen", "rack7")
    assert code == 2 and "testbox rack7 is drained (new disk)" in said
