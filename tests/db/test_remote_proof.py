"""What moderators do about a culprit is the same from elsewhere, on a lab that found one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import sqlalchemy as sa
from click.testing import Result

from swingbot.core.access.roles import Role
from tests.database import fresh
from tests.db.test_remote import elsewhere, run
from tests.db.test_remote_decisions import OWN
from tests.fakelinux import FakeCommit, add_commits, make_fakelinux
from tests.fakes.brain import make_brain
from tests.fakes.mail import brain_environment, running_smtpd
from tests.postgres import Server
from tests.served import Served, served

# Keys of a gate that change when it runs again.
CHANGES: Final = re.compile(rf'{OWN.pattern}|"tries": \d')


@pytest.fixture(scope="module")
def site(pg: Server, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service that found a culprit and wrote a report about it (i1), and found another one when
    somebody asked (i2).
    """
    place = tmp_path_factory.mktemp("site")
    with fresh(pg, template) as url, served(url, place, filled=False) as one:
        good, bad, base = make_fakelinux(
            place / "linux", [FakeCommit(speed=80), FakeCommit(speed=100)]
        )
        brain = make_brain(one.settings, one.engine, place / "linux")
        with running_smtpd(one.settings):
            brain.watch(base)
            brain.run()
            add_commits(brain.repo, [FakeCommit(), FakeCommit(speed=88), FakeCommit()])
            brain.poll()
            brain.run()
            brain.bisect(good, bad)
            brain.run()
        one.conn.execute(sa.text("UPDATE report SET state = 'held', sent_at = NULL"))
        one.conn.commit()
        yield one


def both(
    site: Served, tmp_path: Path, words: str, role: Role = Role.MODERATOR
) -> tuple[Result, Result]:
    """The same command on the host of the service and from elsewhere."""
    on_host, away = environments(site, tmp_path, f"Ada {words[:40]}", role)
    return run(words, on_host), run(words, away)


def environments(
    site: Served, tmp_path: Path, name: str, role: Role
) -> tuple[dict[str, str], dict[str, str]]:
    """Those of the service's host, and of somebody elsewhere with a token of this name."""
    token = site.token(name, role)["Authorization"].split()[1]
    settings = site.settings
    host = brain_environment(settings.state, settings.db.url)
    host["SWINGBOT_WEB_PORT"] = str(settings.web.port)
    return host, elsewhere(site, tmp_path, SWINGBOT_TOKEN=token)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("report classes", "page-fault.per_process_ops"),
        ("report classes --json", '"words"'),
        ("list comparisons", "page-fault.per_process_ops: 12.0% worse"),
        ("list bisections", "-12.0% by "),
        ("proof show i1", "revert"),
        ("proof cost i1", "about "),
        ("proof cost i1 --gate layout --gate facts --json", '"answer"'),
        ("proof cost i1 --gate {long}", "is not a valid gate"),
        ("proof cost i99", "i99 does not exist"),
        ("proof cost c1", "is the id of a comparison"),
        ("recipients tip --tree fake", "dry run: it is sent only to"),
        ("recipients tip --tree fake --base base --json", '"really_to"'),
        ("recipients tip^ --tree fake --json", '"commit"'),
        ("recipients tip..base --tree fake", "is not a valid commit name"),
        ("recipients {long} --tree fake", "is not a valid commit name"),
        ("recipients nothing --tree fake", "has no commit, tag or branch"),
        ("recipients tip --tree none", "tree 'none' does not exist"),
        ("recipients tip --tree fake --base -x", "is not a valid commit name"),
    ],
)
def test_what_only_reads_has_the_same_bytes(
    site: Served, tmp_path: Path, words: str, shown: str
) -> None:
    here, away = both(site, tmp_path, words.replace("{long}", "x" * 5000))
    assert shown in here.output
    assert (away.exit_code, away.stdout, away.stderr) == (here.exit_code, here.stdout, here.stderr)


def test_recipients_are_computed_again_from_elsewhere(site: Served, tmp_path: Path) -> None:
    site.conn.execute(sa.text("UPDATE report SET to_addrs = ARRAY['someone@else.example']"))
    site.conn.commit()
    here, away = both(site, tmp_path, "report readdress r1")
    assert here.exit_code == 0 and "someone@else.example" not in here.output
    acts = [line for line in away.output.splitlines() if " readdress by " in line]
    assert len(acts) == 2 and "readdress by Ada report readdress r1 (web)" in acts[1]
    assert OWN.sub("", away.output.replace(f"{acts[1]}\n", "")) == OWN.sub("", here.output)


def test_gates_are_run_again_from_elsewhere_by_operators(site: Served, tmp_path: Path) -> None:
    words = "proof run i1 --gate facts --gate code --json"
    before = run("proof show i1 --json", elsewhere(site, tmp_path)).output
    for role in (Role.SUBMITTER, Role.MODERATOR):
        token = site.token(f"Bob {role}", role)["Authorization"].split()[1]
        said = run(words, elsewhere(site, tmp_path, SWINGBOT_TOKEN=token))
        assert said.exit_code == 2 and "needs the role " in said.output
    assert run("proof show i1 --json", elsewhere(site, tmp_path)).output == before
    environs = environments(site, tmp_path, "Olga", Role.OPERATOR)
    for typed in (words, words.removesuffix(" --json")):
        host, away = (run(typed, environ) for environ in environs)
        assert host.exit_code == away.exit_code == 0 and away.stdout != before
        texts = [CHANGES.sub("", each.output) for each in (host, away)]
        assert texts[0] == texts[1] and "facts" in texts[0]
    shown = run("incident show i1", environs[1]).output
    assert shown.count("  prove by Olga (web): gates: ") == 2
    assert shown.count("  prove by ") == 4


def test_a_culprit_found_by_hand_is_measured_first(site: Served, tmp_path: Path) -> None:
    said = []
    for environ in environments(site, tmp_path, "Oleg", Role.OPERATOR):
        said.append(run("proof run i2", environ).output)
        for unmeasured in (
            "incident SET comparison = NULL WHERE id = 2",
            "sighting SET comparison = NULL WHERE incident = 2",
        ):
            site.conn.execute(sa.text(f"UPDATE {unmeasured}"))
        site.conn.commit()
    assert said[0] == said[1] and said[0].startswith("i2 is measured against its parent first; ")
    shown = run("incident show i2", elsewhere(site, tmp_path)).output
    assert "  prove by Oleg (web): measured against its parent first\n" in shown
