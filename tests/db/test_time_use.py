"""Where the time of a testbox went, from stored times alone."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa

from swingbot.app.commands.testboxes import _time_use
from swingbot_db import read
from tests import builders as make


def test_each_second_of_a_testbox_has_one_use(conn: sa.Connection) -> None:
    now: datetime = conn.execute(sa.text("SELECT now()")).scalar_one()

    def ago(seconds: float) -> datetime:
        return now - timedelta(seconds=seconds)

    def event(seconds: float, state: str) -> None:
        conn.execute(
            sa.text(
                "INSERT INTO testbox_event (testbox, was, state, why, at)"
                " VALUES ('vm-icount', 'idle', :state, '', :at)"
            ),
            {"state": state, "at": ago(seconds)},
        )

    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    assert read.testbox(conn, testbox.name)["time_use"] is None
    assert _time_use(None) == "no boot yet"
    event(100_000, "quarantined")  # longer than a day ago
    event(90_000, "idle")
    kernel = make.a_variant(conn, tree)
    make.a_kernel_build(conn, kernel, seconds=200, at=ago(900))
    make.an_order(conn, kernel, testbox, state="done", at=ago(900), ended_at=ago(585))
    event(690, "booting")
    event(590, "idle")
    make.an_order(conn, kernel, testbox, k=1, state="done", at=ago(500), ended_at=ago(290))
    event(460, "booting")
    event(450, "running")
    event(400, "lost")
    event(300, "idle")
    never_built = make.a_variant(conn, tree, 1)
    make.an_order(conn, never_built, testbox, state="failed", at=ago(50), ended_at=ago(20))
    use = read.testbox(conn, testbox.name)["time_use"]
    assert use is not None and use.pop("since") is not None
    assert use == {
        "seconds": 86_400,
        "kernel": 200 + 30,
        "busy": 100 + 60,
        "service": 10 + 5 + 40 + 10,
        "out": 100,
        "idle": 86_400 - 230 - 160 - 65 - 100,
        "overhead": pytest.approx(225 / 160, abs=1e-4),
    }
    said = _time_use(use | {"since": "then"})
    assert "busy 2 min 40 s, waiting for a kernel 3 min 50 s, waiting for the service 1 min" in said
    assert said.endswith("(the service adds 41 % to its boots)")


def test_only_the_time_since_the_first_boot_counts(conn: sa.Connection) -> None:
    make.a_testbox(conn)
    conn.execute(
        sa.text(
            "INSERT INTO testbox_event (testbox, was, state, why, at)"
            " VALUES ('vm-icount', 'idle', 'running', '', now() - interval '90 s')"
        )
    )
    use = read.testbox(conn, "vm-icount")["time_use"]
    assert 90 <= use["seconds"] < 900
    assert (use["busy"], use["overhead"]) == (use["seconds"], 1.0)
