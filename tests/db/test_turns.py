"""Who asks for much does not keep others from a testbox."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from swingbot.app.settings import load
from swingbot.app.submitter import DatabaseSubmitter
from swingbot.core.access.roles import Role
from swingbot.service.bisect.request import BisectionRequest
from swingbot.service.table.request import TableRequest
from swingbot.service.tick import tick
from swingbot_db.read.estimate import LabQueue
from tests.db.racks import environment, rows
from tests.fakelinux import FakeCommit, make_fakelinux
from tests.fakes.brain import Brain, make_brain
from tests.fakes.loop import JOB, METRIC
from tests.fakes.people import a_person
from tests.table_requests import comparing, request_table

BOOTS = 3


@pytest.fixture
def brain(tmp_path: Path, db_url: str, engine: sa.Engine) -> Brain:
    """Four kernels that are built."""
    make_fakelinux(tmp_path / "linux", [FakeCommit() for _ in range(4)])
    settings = load(environ=environment(tmp_path, db_url))
    brain = make_brain(settings, engine, tmp_path / "linux")
    base = brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main")
    brain.watch(base, testboxes=["vm-icount"])
    for number in range(1, 4):
        request_table(brain.lab, wanted(number, testbox="vm-icount", boots=1))
    brain.run()
    return brain


def wanted(number: int, testbox: str = "rack7", boots: int = BOOTS) -> TableRequest:
    return comparing(
        "base",
        f"base~{number}",
        job_files=[JOB],
        testboxes=[testbox],
        boots=boots,
    )


class People:
    """People with tokens, who ask through the pages' own path."""

    def __init__(self, brain: Brain) -> None:
        self.brain = brain
        self.submitter = DatabaseSubmitter(brain.settings, brain.engine, lambda: brain.lab)

    def ask(self, who: str, *numbers: int, boots: int = BOOTS) -> None:
        for number in numbers:
            person = a_person(self.brain.engine, who, Role.SUBMITTER)
            self.submitter.ask(person, wanted(number, boots=boots))

    def bisect(self, who: str) -> None:
        request = BisectionRequest(
            tree="fake",
            good="base~3",
            bad="base",
            metric=METRIC,
            job_files=[JOB],
            testbox="rack7",
            asked_by=a_person(self.brain.engine, who, Role.SUBMITTER),
        )
        self.submitter.start_bisection(request)

    def served(self) -> list[str]:
        """Whose boots were handed out on rack7, in this order."""
        found = rows(
            self.brain,
            "SELECT coalesce(min(a.who), '') AS who FROM attempt t JOIN orders o ON o.id ="
            " t.order_id JOIN want w ON w.order_id = o.id LEFT JOIN asked a ON a.comparison ="
            " w.comparison WHERE o.testbox = 'rack7' GROUP BY t.id ORDER BY t.id",
        )
        return [row["who"] for row in found]


def test_a_person_with_one_request_gets_every_second_boot(brain: Brain) -> None:
    people = People(brain)
    people.ask("greedy", 1, 2)
    tick(brain.lab)
    people.ask("modest", 3)
    brain.run()
    served = people.served()
    assert served[:6] == ["greedy", "modest"] * 3
    assert served.count("greedy") > served.count("modest")


def test_requests_of_the_operator_take_turns_with_those_of_people(brain: Brain) -> None:
    people = People(brain)
    for number in (1, 2):
        request_table(brain.lab, wanted(number))
    tick(brain.lab)
    people.ask("ada", 3)
    brain.run()
    assert people.served()[:4] == ["", "ada", "", "ada"]


def test_an_estimate_knows_the_turns(brain: Brain) -> None:
    people = People(brain)
    people.ask("greedy", 1, 2)
    tick(brain.lab)
    people.ask("modest", 3)
    tick(brain.lab)
    with brain.engine.connect() as conn:
        pending = LabQueue.load(conn).forecast.pending.values()
    askers = {order.asker for order in pending}
    assert askers == {"greedy", "modest"}
    running = [order for order in pending if order.elapsed is not None]
    assert [order.asker for order in running] == ["greedy"]
    boots = [order for order in pending if order.testbox is not None]
    assert all((order.served is None) == (order.asker == "modest") for order in boots)


def test_bisections_take_turns_by_person(brain: Brain) -> None:
    people = People(brain)
    people.bisect("ada")
    tick(brain.lab)
    with brain.engine.connect() as conn:
        pending = LabQueue.load(conn).forecast.pending.values()
    assert {order.asker for order in pending if order.testbox is not None} == {"ada"}
