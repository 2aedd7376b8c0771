"""A table asked for from another machine is the one that is asked for on the service's host: the
same plan, the same words, the same table; what an operator alone may is refused."""

from __future__ import annotations

import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result

from swingbot.app.cli import main
from swingbot.core.access.roles import Role
from swingbot.service.kernel.foresee_builds import foresee_builds
from tests.asking import Serve, Site

ASKED: Final = (
    "compare base tip",
    "compare base tip --boots 3 --min-effect 0.5 --looks 2 --with size",
    "experiment base..tip --against above,first",
    "experiment base..tip --paths mm/*",
    "compare base --patch {patch}",
    "compare base --patch {patch} --patch {second}",
    "experiment --base base --series {series}",
    "experiment --base base --series {quilt} --against base",
    "experiment --base base --variant b={patch},{second} --variant a={patch} --variant t=tip",
    "experiment base tip --layout 0 --layout 1",
    "experiment base tip --sysctl few=vm.stat_interval=10 --sysctl many=vm.stat_interval=1",
    "experiment base tip --layout 0 --layout 1 --exclude layout=layout1,kernel=tip",
    "compare base tip --set runs=3",
    "compare base tip --job vm-page-fault",
)
REFUSED: Final = (
    "compare base",
    "compare base tip --tree other",
    "experiment base tip --fragment odd=nosuch",
    "compare base tip --set runs=many",
    "compare base --patch {empty}",
)


@pytest.fixture
def site(serve: Serve) -> Site:
    return serve()


def files(site: Site, place: Path) -> dict[str, Path]:
    """Patches of the second and third commit, alone, as a mailbox and as a quilt directory."""
    made = {name: place / name for name in ("patch", "second", "series", "quilt", "empty")}
    for name, args in {
        "patch": ("diff", site.commits[0], site.commits[1]),
        "second": ("diff", site.commits[1], site.commits[2]),
        "series": ("format-patch", "--stdout", "--cover-letter", "-2"),
        "empty": ("diff", site.commits[0], site.commits[0]),
    }.items():
        text = subprocess.run(
            ["git", "-C", str(site.linux), *args], check=True, capture_output=True
        )
        made[name].write_bytes(text.stdout)
    made["quilt"].mkdir()
    for name in ("patch", "second"):
        (made["quilt"] / f"{name}.diff").write_bytes(made[name].read_bytes())
    (made["quilt"] / "series").write_text("patch.diff\nsecond.diff\n")
    return made


def here(site: Site) -> dict[str, str]:
    settings = site.web.settings
    return {
        "SWINGBOT_DB_URL": settings.db.url,
        "SWINGBOT_PATHS_STATE": str(settings.state),
        "SWINGBOT_WEB_PORT": str(settings.web.port),
    }


def elsewhere(site: Site, place: Path, role: Role = Role.SUBMITTER) -> dict[str, str]:
    token = site.web.token(f"Ada {role}", role)["Authorization"].split()[1]
    url = f"http://127.0.0.1:{site.web.port}"
    return {"SWINGBOT_URL": url, "SWINGBOT_TOKEN": token, "XDG_CONFIG_HOME": str(place)}


def run(words: str, env: dict[str, str]) -> Result:
    return CliRunner().invoke(main, words.split(), env=env)


def test_a_table_asked_for_from_elsewhere_is_the_table_of_the_host(
    serve: Serve, tmp_path: Path
) -> None:
    site = serve(SWINGBOT_WEB_OPEN_REQUESTS="100", SWINGBOT_WEB_TESTBOX_MINUTES="100000")
    named, away = files(site, tmp_path), elsewhere(site, tmp_path)
    for asked in ASKED:
        words = asked.format(**named)
        planned, planned_away = (run(f"{words} --dry-run", env) for env in (here(site), away))
        assert planned.exit_code == 0, (words, planned.output)
        assert planned_away.output == planned.output, words
        queued, queued_away = (run(words, env) for env in (here(site), away))
        assert queued.exit_code == queued_away.exit_code == 0, queued_away.output
        assert queued_away.stdout == queued.stdout, "the same question is the same table"
    count = site.web.conn.execute(sa.text("SELECT count(*) FROM comparison")).scalar_one()
    assert count == len(ASKED)


@pytest.mark.parametrize("asked", REFUSED)
def test_what_is_refused_is_refused_in_the_same_words(
    asked: str, site: Site, tmp_path: Path
) -> None:
    words = asked.format(**files(site, tmp_path))
    refused, refused_away = (run(words, env) for env in (here(site), elsewhere(site, tmp_path)))
    assert refused.exit_code == refused_away.exit_code == 2
    assert refused_away.output.splitlines()[0][:60] == refused.output.splitlines()[0][:60]


def test_who_asked_cancels_and_others_do_not(site: Site, tmp_path: Path) -> None:
    ada, moderator = (elsewhere(site, tmp_path, role) for role in (Role.SUBMITTER, Role.MODERATOR))
    token = site.web.token("Bob", Role.SUBMITTER)["Authorization"].split()[1]
    bob = ada | {"SWINGBOT_TOKEN": token}
    for boots in (3, 4, 5):
        assert run(f"compare base tip --boots {boots}", ada).exit_code == 0
    assert run("compare base tip --boots 4", bob).exit_code == 0
    refused = run("cancel c1", bob)
    assert refused.exit_code == 2 and "c1 is not yours" in refused.output
    assert run("cancel c1", ada).output == "c1 is cancelled\n"
    assert run("cancel c1", ada).output == "c1 is cancelled\n"
    assert "cancelled by Ada submitter" in run("show c1", ada).output
    assert "others wait for c2 too" in run("cancel c2", ada).output
    assert "c2 is not yours" in run("cancel c2", bob).output
    assert run("compare base tip --boots 6", here(site)).exit_code == 0
    assert run("compare base tip --boots 6", bob).exit_code == 0
    assert "c4 is not yours" in run("cancel c4", bob).output
    assert run("cancel c2", moderator).output == "c2 is cancelled\n"
    assert run("cancel c3", here(site)).output == "c3 is cancelled\n"
    assert run("cancel c9", ada).output == run("cancel c9", here(site)).output
    assert site.web.client.post("/comparison/c3/cancel").status_code == 401


def test_who_asked_extends_with_the_same_plan_and_pays_for_it(serve: Serve, tmp_path: Path) -> None:
    site = serve(SWINGBOT_WEB_TESTBOX_MINUTES="100")
    ada, moderator = (elsewhere(site, tmp_path, role) for role in (Role.SUBMITTER, Role.MODERATOR))
    bob = ada | {"SWINGBOT_TOKEN": site.web.token("Bob", Role.SUBMITTER)["Authorization"][7:]}
    assert run("compare base tip --boots 2", ada).exit_code == 0
    for words in ("extend c1 --boots 2 --dry-run", "extend c1 --boots 2 --dry-run --json"):
        planned, planned_away = (run(words, env) for env in (here(site), ada))
        assert planned.exit_code == planned_away.exit_code == 0, planned_away.output
        assert planned_away.stdout == planned.stdout and planned_away.stderr == planned.stderr
    assert "c1 is not yours" in run("extend c1 --boots 2", bob).output
    extended = run("extend c1 --boots 2 --json", ada)
    assert extended.exit_code == 0, extended.output
    assert boots_of(site, "c1") == 4 and '"boots_each": 4' in extended.stdout
    row = "SELECT testbox_seconds FROM asked WHERE who = 'Ada submitter'"
    spent = site.web.conn.execute(sa.text(row)).scalar_one()
    site.web.conn.rollback()
    assert run("extend c1 --boots 1", ada).exit_code == 0
    more = site.web.conn.execute(sa.text(row)).scalar_one()
    site.web.conn.rollback()
    assert more > spent > 0
    refused = run("extend c1 --boots 900", ada)
    assert refused.exit_code == 2 and "in 24 hours are left" in refused.output
    assert run("extend c1 --boots 1", moderator).exit_code == 0
    for words in (
        "extend c9 --boots 1",
        "extend b1 --boots 1",
        "extend c1",
        "extend c1 --boots 1000",
    ):
        told, told_away = (run(words, env) for env in (here(site), ada))
        assert told.exit_code == told_away.exit_code == 2, told_away.output
        assert told_away.output == told.output
    patch = files(site, tmp_path)["patch"]
    rows = run(f"extend c1 --boots 1 --variant v2={patch}", ada)
    assert rows.exit_code == 2 and "on the service's own host only" in rows.output
    assert boots_of(site, "c1") == 6


def boots_of(site: Site, id_: str) -> int:
    boots = site.web.conn.execute(sa.text(f"SELECT boots FROM comparison WHERE id = {id_[1:]}"))
    number = int(boots.scalar_one())
    site.web.conn.rollback()
    return number


def test_what_an_operator_alone_may_is_refused(site: Site, tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("suite: x\n")
    away = elsewhere(site, tmp_path)
    machine = "experiment base tip --cmdline usual= --cmdline off=iommu=off"
    assert run(f"{machine} --dry-run", here(site)).exit_code == 0
    for words, sentence in {
        machine: "reaches the machine below",
        "compare base tip --trusted": "on the service's own host only",
        f"compare base tip --job {own}": "runs the jobs that it ships",
        "compare base tip --boots 400": "of your 600 in 24 hours are left",
        "compare base nosuch": "has no commit, tag or branch 'nosuch'",
        "compare base tip --job nosuch": "'nosuch.yaml' does not exist; choose from",
    }.items():
        said = run(words, away)
        assert said.exit_code == 2 and sentence in said.output, said.output
    reader = run("compare base tip", elsewhere(site, tmp_path, Role.READER))
    assert reader.exit_code == 2 and "needs the role submitter" in reader.output


def test_a_table_is_cancelled_and_asked_for_again_any_number_of_times(site: Site) -> None:
    operator = site.web.token("Ada", Role.OPERATOR)
    for number in range(1, 5):
        queued = site.json(operator)
        assert (queued.status_code, queued.json()["id"]) == (201, f"c{number}")
        cancelled = site.web.client.post(f"/comparison/c{number}/cancel", headers=operator)
        assert cancelled.json() == {"id": f"c{number}", "was": "waiting"}


def test_one_of_two_who_ask_for_the_same_table_at_once_pays(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each waits until the other, too, has found that nobody asked for it before."""
    people = [site.web.token(who, Role.SUBMITTER) for who in ("Ada", "Bob")]
    site.json(people[0], boots=2)  # two who record the same kernel take turns
    both = threading.Barrier(2)

    def foresee_together(*parts: Any) -> None:
        both.wait(120)
        foresee_builds(*parts)

    monkeypatch.setattr("swingbot.service.table.plan.foresee_builds", foresee_together)
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(site.json, people))
    assert sorted(one.status_code for one in answers) == [200, 201]
    assert {one.json()["id"] for one in answers} == {"c2"}
    with site.web.engine.connect() as conn:
        paid = conn.execute(
            sa.text("SELECT count(*) FROM asked WHERE comparison = 2 AND testbox_seconds > 0")
        )
        assert paid.scalar_one() == 1
