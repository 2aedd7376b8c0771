"""What /metrics says, what the alert rules make of it, and what a nearly full disk stops."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
import yaml

from swingbot.adapters.artifacts import ArtifactDirectory
from swingbot.adapters.heartbeat import Heartbeat, last_beat
from swingbot.adapters.part_heartbeat import PartHeartbeat
from swingbot.app import limits
from swingbot.app.keep.health_check import beat_file, problems_here, why_no_room
from swingbot.app.keep.health_page import read_here
from swingbot.app.settings import Settings, load
from swingbot.core.keep.health import SILENT_SECONDS, LoopHeartbeat, no_room, problems
from swingbot.core.model.artifact import NoSpace
from swingbot.service.tick import tick
from swingbot.web.health.metrics import MetricFamily, text
from swingbot_db.engine import make_engine
from tests.fakelinux import FakeCommit, make_fakelinux
from tests.fakes.artifacts import stored
from tests.fakes.brain import make_brain
from tests.fakes.mail import brain_environment, running_smtpd
from tests.fakes.scrape import scraped
from tests.scenario import a_lab
from tests.served import served

MIB = 1 << 20
RULES = Path(__file__).parents[2] / "dashboards" / "prometheus" / "alerts.yml"
_SAMPLE = re.compile(
    r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)+)\})? (-?[0-9.e+-]+|NaN)'
)


def parsed(body: str) -> dict[str, dict[str, float]]:
    """Name -> labels as they stand -> value; fails on any line that the format does not know."""
    found: dict[str, dict[str, float]] = {}
    typed = set()
    for line in body.splitlines():
        if line.startswith("# TYPE "):
            name, kind = line.removeprefix("# TYPE ").split()
            assert kind in ("gauge", "counter")
            assert (kind == "counter") == name.endswith("_total")
            assert name not in typed
            typed.add(name)
        elif not line.startswith("# HELP "):
            match = _SAMPLE.fullmatch(line)
            assert match is not None, line
            assert match[1] in typed
            series = found.setdefault(match[1], {})
            assert (match[2] or "") not in series
            series[match[2] or ""] = float(match[3])
    return found


def looked_at(settings: Settings, engine: sa.Engine) -> dict[str, dict[str, float]]:
    kind, body = scraped(settings, engine)
    assert kind.startswith("text/plain; version=0.0.4")
    return parsed(body)


def settings_at(state: Path, **more: str) -> Settings:
    return load(environ={"SWINGBOT_PATHS_STATE": str(state), **more})


def test_the_figures_are_those_of_the_lab(
    tmp_path: Path, engine: sa.Engine, conn: sa.Connection
) -> None:
    a_lab(conn)
    settings = settings_at(tmp_path)
    Heartbeat(beat_file(settings)).beat()
    found = looked_at(settings, engine)
    assert (
        found["swingbot_orders"]['kind="boot",state="ready"']
        == conn.execute(sa.text("SELECT count(*) FROM orders WHERE state = 'ready'")).scalar_one()
    )
    assert found["swingbot_orders"]['kind="build",state="running"'] == 0
    assert found["swingbot_boots_total"]['testbox="vm-icount",outcome="panicked"'] == 1
    assert found["swingbot_testbox_state"]['testbox="rack7",state="quarantined"'] == 1
    assert found["swingbot_testbox_state"]['testbox="rack7",state="active"'] == 0
    assert found["swingbot_testbox_leased"]['testbox="vm-tcg"'] == 1
    assert found["swingbot_reports"]['state="sent"'] == 1
    assert found["swingbot_bisections_open"][""] == 1
    assert found["swingbot_database_up"][""] == 1
    assert 0 <= found["swingbot_loop_last_round_seconds"][""] < 60
    assert found["swingbot_disk_free_bytes"][""] > 0
    # there is none, so it has no age
    assert 'kind="build",state="waiting"' not in found.get("swingbot_order_oldest_seconds", {})


def test_without_a_database_the_rest_is_still_reported(tmp_path: Path) -> None:
    engine = make_engine(f"postgresql:///none?host={tmp_path}")
    found = looked_at(settings_at(tmp_path), engine)
    assert found["swingbot_database_up"][""] == 0
    assert "swingbot_orders" not in found
    assert "swingbot_loop_last_round_seconds" not in found  # it never ran here: missing is missing
    assert "swingbot_disk_free_bytes" in found


def test_a_name_cannot_break_the_format() -> None:
    body = text(
        [
            MetricFamily(
                "x", "gauge", "doc", [({"testbox": 'a"b\\c\nd'}, 1), ({"testbox": "e"}, None)]
            )
        ]
    )
    assert body == '# HELP x doc\n# TYPE x gauge\nx{testbox="a\\"b\\\\c\\nd"} 1\n'
    assert parsed(body) == {"x": {'testbox="a\\"b\\\\c\\nd"': 1.0}}


def test_every_metric_of_the_alert_rules_is_one_of_ours(
    tmp_path: Path, engine: sa.Engine, conn: sa.Connection
) -> None:
    a_lab(conn)
    conn.execute(sa.text("INSERT INTO alert (kind, reason) VALUES ('stuck', 'x')"))
    conn.execute(
        sa.text("INSERT INTO testbox_now (testbox) SELECT name FROM testbox ON CONFLICT DO NOTHING")
    )
    settings = settings_at(tmp_path)
    Heartbeat(beat_file(settings)).beat()
    PartHeartbeat(settings.state, "web").beat()
    # no mail is queued
    ours = looked_at(settings, engine).keys() | {"swingbot_mail_oldest_seconds"}
    rules = [
        rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
    ]
    used = {name for rule in rules for name in re.findall(r"\bswingbot_[a-z_]+", rule["expr"])}
    assert len(rules) >= 7
    assert used <= ours


def test_every_alert_has_its_place_in_the_runbook() -> None:
    runbook = (RULES.parents[2] / "docs" / "operations.md").read_text()
    headings = {
        re.sub(r"[^a-z0-9 -]", "", line.lstrip("# ").lower()).replace(" ", "-")
        for line in runbook.splitlines()
        if line.startswith("#")
    }
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        for rule in group["rules"]:
            page, _, anchor = rule["annotations"]["runbook"].partition("#")
            assert page == "docs/operations.md"
            assert anchor in headings, rule["alert"]
            assert rule["alert"] in runbook


# -- a disk that fills up --------------------------------------------------------------------------


def _but_for_the_space_left(problem: dict[str, Any]) -> dict[str, Any]:
    """Whoever else writes to the disk moves that number between two looks."""
    words, count = re.subn(r"has \d+ MiB left", "has N MiB left", problem["text"])
    assert count == 1
    return problem | {"text": words}


def test_nothing_is_handed_out_while_the_disk_is_nearly_full_and_work_goes_on_by_itself(
    tmp_path: Path, db_url: str, engine: sa.Engine
) -> None:
    base, *_ = make_fakelinux(tmp_path / "linux", [FakeCommit()])
    environment = brain_environment(tmp_path / "state", db_url)
    full = load(environ=environment | {"SWINGBOT_DISK_STOP_BELOW_MIB": str(1 << 40)})
    roomy = load(
        environ=environment
        | {"SWINGBOT_DISK_STOP_BELOW_MIB": "0", "SWINGBOT_DISK_WARN_BELOW_MIB": "0"}
    )
    brain = make_brain(full, engine, tmp_path / "linux")
    with running_smtpd(full):
        brain.watch(base)
        for _ in range(3):
            tick(brain.lab)
            assert brain.fake.work() == 0
        assert brain.count("orders WHERE state IN ('waiting', 'ready')") > 0
        assert brain.count("attempt") == 0
        assert brain.count("alert WHERE kind = 'disk' AND ended_at IS NULL") == 1
        assert (
            brain.count("report WHERE kind = 'alert' AND subject LIKE '%the disk is nearly full%'")
            == 1
        )
        (problem,) = problems_here(full)
        assert "no order is handed out until there is more" in problem["text"]
        with engine.connect() as conn:
            shown = read_here(full).status(conn)["problems"][0]
        assert _but_for_the_space_left(shown) == _but_for_the_space_left(problem)
        tools = dataclasses.replace(brain.lab.tools, no_room=partial(why_no_room, roomy))
        brain.lab = dataclasses.replace(brain.lab, tools=tools)
        tick(brain.lab)
        assert brain.fake.work() > 0
        assert problems_here(roomy) == []
        assert brain.count("alert WHERE kind = 'disk' AND ended_at IS NOT NULL") == 1


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)],
        capture_output=True,
        text=True,
    )
    if mounted.returncode != 0:
        pytest.skip(
            f"no file system can be mounted here ({mounted.stderr.strip()}): a disk that "
            f"is really full is not tried"
        )
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_disk_that_is_full_loses_nothing_and_says_so(small_disk: Path) -> None:
    settings = settings_at(small_disk, SWINGBOT_DISK_STOP_BELOW_MIB="3")
    store, heart = ArtifactDirectory(settings.artifacts), Heartbeat(beat_file(settings))
    first = stored(store, os.urandom(MIB))
    heart.beat()
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as out:
        while out.write(b"\0" * 4096) == 4096 and shutil.disk_usage(small_disk).free > 0:
            pass
    content = os.urandom(MIB)
    with pytest.raises(NoSpace, match="is full; free some space"):
        stored(store, content)
    assert list((settings.artifacts / "incoming").iterdir()) == []  # nothing half
    assert why_no_room(settings) is not None
    before = beat_file(settings).stat().st_mtime_ns
    heart.beat()
    assert beat_file(settings).stat().st_mtime_ns > before  # a sign of life needs no space
    heart.beat("OSError: the disk is full")
    assert last_beat(beat_file(settings)) is not None
    filler.unlink()
    assert store.has(first)
    assert stored(store, content)
    heart.beat()
    beat = last_beat(beat_file(settings))
    assert beat is not None
    assert beat.problem is None


def test_the_disk_that_counts_is_the_one_of_the_state_directory_even_before_there_is_one(
    tmp_path: Path,
) -> None:
    free = shutil.disk_usage(tmp_path).free // MIB
    reason = why_no_room(
        settings_at(tmp_path / "not" / "yet", SWINGBOT_DISK_STOP_BELOW_MIB=str(free + (1 << 20)))
    )
    assert reason is not None
    assert str(tmp_path / "not" / "yet") in reason


@pytest.mark.parametrize(
    ("free", "beat", "expected"),
    [
        (99, None, []),
        (9, None, ["is handed out; `swingbot retention`"]),
        (4, None, ["no order is handed out until"]),
        (
            99,
            LoopHeartbeat(age_seconds=SILENT_SECONDS + 1, problem="x"),
            ["has not completed a round for 10 minutes"],
        ),
        (99, LoopHeartbeat(age_seconds=SILENT_SECONDS - 1, problem=None), []),
        (
            99,
            LoopHeartbeat(age_seconds=1, problem="it broke"),
            ["last round failed and is repeated: it broke"],
        ),
        (4, LoopHeartbeat(age_seconds=9999, problem=None), ["no order", "not completed a round"]),
    ],
)
def test_problems_of_the_machine_are_reported_the_worst_first(
    free: int, beat: LoopHeartbeat | None, expected: list[str]
) -> None:
    found = problems(free * MIB, 5, 10, "/srv", beat)
    assert len(found) == len(expected)
    for sentence, words in zip(found, expected, strict=True):
        assert words in sentence


def test_at_the_limit_there_is_room() -> None:
    assert no_room(5 * MIB, 5, "/srv") is None
    assert no_room(5 * MIB - 1, 5, "/srv") is not None


def test_requests_and_refusals_are_counted(db_url: str, tmp_path: Path) -> None:
    with served(db_url, tmp_path / "site", filled=False, SWINGBOT_WEB_RATE="0.06") as site:
        answers = [site.client.get("/none").status_code for _ in range(30)]
        other = httpx.HTTPTransport(local_address="127.0.0.2")  # a client that has not asked yet
        with httpx.Client(transport=other) as client:
            body = client.get(f"http://127.0.0.1:{site.port}/metrics").text
    found = parsed(body)
    assert answers.count(429) > 0
    assert found["swingbot_web_refused_total"] == {'status="429"': answers.count(429)}
    assert found["swingbot_web_requests"][""] == 1  # this one
    assert found["swingbot_web_requests_limit"][""] == limits.CONNECTIONS
