"""End a request over the web at each of its database commits: what is queued is charged, once, and
nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
import sqlalchemy as sa

from swingbot.app.submitter import DatabaseSubmitter
from swingbot.app.wiring import make_lab
from swingbot.core.access.roles import Person, Role
from swingbot.service.bisect.request import BisectionRequest
from swingbot.service.bisect.resume import ResumeRequest
from swingbot.service.table.extend import ExtensionRequest
from swingbot.service.table.kernels import KernelRequest, at
from swingbot.service.table.request import TableRequest
from tests.asking import Serve, Site

QUEUED: Final = """
SELECT (SELECT count(*) FROM comparison) + (SELECT count(*) FROM bisection) AS queued,
  (SELECT coalesce(sum(boots), 0) FROM comparison) AS boots,
  (SELECT count(*) FROM bisection WHERE status = 'running') AS running,
  (SELECT count(*) FROM asked) AS asked,
  (SELECT coalesce(sum(testbox_seconds), 0) FROM asked) AS seconds
"""
EMPTY: Final = {"queued": 0.0, "boots": 0.0, "running": 0.0, "asked": 0.0}
ADDED: Final = {
    "compare": {**EMPTY, "queued": 1.0, "boots": 3.0, "asked": 1.0},
    "extend": {**EMPTY, "boots": 3.0},
    "bisect": {**EMPTY, "queued": 1.0, "running": 1.0, "asked": 1.0},
    "resume": {**EMPTY, "running": 1.0},
}


class Killed(BaseException):
    """The service is gone: nothing that follows in its code happens."""


def recorded(site: Site) -> dict[str, float]:
    with site.web.engine.connect() as conn:
        row = conn.execute(sa.text(QUEUED)).one()
        return {key: float(value) for key, value in row._mapping.items()}


def requests(site: Site, ada: Person) -> dict[str, Callable[[], object]]:
    lab = make_lab(site.web.settings, site.web.engine)
    submitter = DatabaseSubmitter(site.web.settings, site.web.engine, lambda: lab)
    kernels = KernelRequest(base="base", rows=[at("tip")])
    table = TableRequest(tree="fake", kernels=kernels, boots=3)
    search = BisectionRequest(
        tree="fake", good="base", bad="tip", metric="hackbench.throughput", asked_by=ada
    )
    return {
        "compare": lambda: submitter.ask(ada, table),
        "extend": lambda: submitter.extend(ada, ExtensionRequest(id="c1", boots=3)),
        "bisect": lambda: submitter.start_bisection(search),
        "resume": lambda: submitter.resume(ada, ResumeRequest(id="b1", boots=3, by=ada)),
    }


@pytest.mark.parametrize("verb", ADDED)
def test_what_is_queued_is_charged_once_wherever_the_request_ends(
    verb: str, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = serve(SWINGBOT_WEB_TESTBOX_MINUTES="100000")
    site.web.token("Ada", Role.SUBMITTER)
    with site.web.engine.connect() as conn:
        token = conn.execute(sa.text("SELECT max(id) FROM access_token")).scalar_one()
    ask = requests(site, Person(who="Ada", role=Role.SUBMITTER, token=token))
    for first in {"extend": ["compare"], "resume": ["bisect"]}.get(verb, []):
        ask[first]()
    if verb == "resume":
        with site.web.engine.begin() as conn:
            conn.execute(sa.text("UPDATE bisection SET status = 'cancelled', ended_at = now()"))
    before, point, ended = recorded(site), 0, False
    while recorded(site) == before:
        assert not ended, "nothing was queued"
        point += 1
        passed = 0

        def checkpoint(name: str, last: int = point) -> None:
            nonlocal passed
            passed += 1
            if passed == last:
                raise Killed(name)

        monkeypatch.setattr("swingbot_db.engine.checkpoint", checkpoint)
        try:
            ask[verb]()
            ended = True
        except Killed:
            pass
    added = {key: value - before[key] for key, value in recorded(site).items()}
    assert added.pop("seconds") > 0 and added == ADDED[verb], f"ended at point {point}"
    assert point > 2 and not ended
    if verb in ("compare", "bisect"):  # the person asks again
        monkeypatch.undo()
        after = recorded(site)
        ask[verb]()
        assert recorded(site) == after
