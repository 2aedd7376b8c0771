"""A web service for tests of requests for comparisons and experiments, and a person who may submit
them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from swingbot.app.wiring import make_lab, sync_testboxes
from swingbot.core.access.roles import Role
from swingbot.core.model.records import JobFile
from swingbot.service.watch.trees import NewTree, add_tree, poll_tree
from tests.database import fresh
from tests.fakelinux import FakeCommit, make_fakelinux
from tests.postgres import Server
from tests.served import Served, served


@dataclass(kw_only=True)
class Site:
    """A service whose only tree is `fake`: base, one commit after it, and the tip."""

    web: Served
    commits: list[str]
    linux: Path

    def json(self, headers: dict[str, str], **keys: Any) -> httpx.Response:
        return self.web.client.post(
            "/compare",
            json={"tree": "fake", "base": "base", "head": "tip", **keys},
            headers=headers,
        )

    def patch(self) -> str:
        return subprocess.run(
            ["git", "-C", str(self.linux), "diff", self.commits[0], self.commits[1]],
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def mailbox(self) -> str:
        """Both commits after the base as mails, with a cover letter."""
        return subprocess.run(
            ["git", "-C", str(self.linux), "format-patch", "--stdout", "--cover-letter", "-2"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def head_of(self, comparison: str) -> Any:
        query = (
            "SELECT v.commit, v.origin, v.trust FROM comparison_pair c JOIN variant v ON v.id"
            " = c.head WHERE c.id = :id"
        )
        return self.web.conn.execute(sa.text(query), {"id": int(comparison[1:])}).one()


def a_site(stack: ExitStack, db_url: str, place: Path, **environment: str) -> Site:
    web = stack.enter_context(served(db_url, place, filled=False, **environment))
    commits = make_fakelinux(place / "linux", [FakeCommit(speed=99), FakeCommit(speed=98)])
    lab = make_lab(web.settings, web.engine)
    sync_testboxes(lab)
    job = JobFile(
        name="vm-hackbench.yaml",
        text=(Path(web.settings.paths.jobs) / "vm-hackbench.yaml").read_text(),
    )
    where: dict[str, Any] = {
        "url": str(place / "linux"),
        "branch": "main",
        "base": commits[0],
        "kconfig": "vm-x86_64",
        "compiler": "gcc",
    }
    tree = add_tree(
        lab, NewTree(name="fake", job_files=[job], testboxes=["vm-icount"], paths=(), **where)
    )
    assert poll_tree(lab.transaction, lab.tools.git, tree) is None
    return Site(web=web, commits=commits, linux=place / "linux")


Serve = Callable[..., Site]


@pytest.fixture
def serve(db_url: str, tmp_path: Path) -> Iterator[Serve]:
    with ExitStack() as stack:
        yield lambda **environment: a_site(stack, db_url, tmp_path, **environment)


@pytest.fixture(scope="module")
def idle(pg: Server, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """For tests in which nothing is queued."""
    with fresh(pg, template) as url, ExitStack() as stack:
        yield a_site(stack, url, tmp_path_factory.mktemp("asking"), SWINGBOT_WEB_WRITE_RATE="0")


@pytest.fixture(scope="module")
def ada(idle: Site) -> dict[str, str]:
    return idle.web.token("Ada", Role.SUBMITTER)
