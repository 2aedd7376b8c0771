"""A private table, its kernels, builds and boots are shown to those to whom it is private, at every
address, and to operators; published, to everybody."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result

from swingbot.app.cli import main
from swingbot.core.access.roles import Role
from swingbot.core.model import ids
from tests import builders as make
from tests.asking import Serve
from tests.database import fresh
from tests.hidden import LEAK, LEVEL, METRIC, UNIT_JOB, WORD, Hidden, addresses, leak, read
from tests.postgres import Server
from tests.served import Served, served

BOOTS_READY = 'swingbot_orders{kind="boot",state="ready"} '
OPEN = {"SWINGBOT_WEB_RATE": "0", "SWINGBOT_WEB_WRITE_RATE": "0"}


def _hide(conn: sa.Connection, tree: int) -> Hidden:
    """Two private tables of kernels of their own, booted, with a build that failed and a queue."""
    testbox = make.a_testbox(conn)
    base, head = kernels = [
        make.a_kernel(conn, tree, f"{WORD}{at}", subject=f"{WORD}: change {at}") for at in range(2)
    ]
    conn.execute(
        sa.text("UPDATE variant SET origin = 'request' WHERE id = ANY(:ids)"),
        {"ids": [kernel.variant for kernel in kernels]},
    )
    tables = []
    for kind in ("asked", "experiment"):
        table = make.a_comparison(
            conn, tree, base, head, [testbox], kind=kind, private_to=["Ada"], reason=WORD,
            status="failed",
        )  # fmt: skip
        make.a_row(
            conn, table, testbox, METRIC, base=[LEVEL] * 3, head=[LEVEL * 2] * 3, unit_job=UNIT_JOB
        )
        tables.append(table)
    boots = [
        make.a_boot(
            conn, testbox, kernel, k=k, series="private",
            values={(UNIT_JOB, "shared.speed"): [LEVEL] * 3}, comparison=tables[0],
        )
        for kernel in kernels
        for k in range(3)
    ]  # fmt: skip
    order = make.an_order(conn, head, testbox, k=9, state="ready", comparison=tables[0])
    conn.execute(
        sa.text("INSERT INTO asked (comparison, who, token, testbox_seconds) SELECT :c, 'Ada',"
                " min(id), 1 FROM access_token"), {"c": tables[0]},
    )  # fmt: skip
    build = conn.execute(
        sa.text("SELECT id FROM orders WHERE kind = 'build' AND build_key = :key"),
        {"key": head.build_key},
    ).scalar_one()
    return Hidden(
        commits=[kernel.commit for kernel in kernels],
        build_key=head.build_key,
        order=order,
        numbers={
            "comparison": tables[:1],
            "experiment": tables[1:],
            "order": [order, build],
            "boot": boots[-1:],
            "variant": [head.variant],
            "bisection": [],
            "incident": [],
            "report": [],
        },
    )


@dataclass(frozen=True, kw_only=True)
class World:
    site: Served
    hidden: Hidden
    people: dict[str, dict[str, str]]  # headers by name; "": nobody


@pytest.fixture(scope="module")
def world(pg: Server, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    place = tmp_path_factory.mktemp("private")
    with fresh(pg, template) as url, served(url, place, filled=True, **OPEN) as site:
        people = {
            "": {},
            "Ada": site.token("Ada", Role.SUBMITTER),
            "Bob": site.token("Bob", Role.MODERATOR),
            "Opal": site.token("Opal", Role.OPERATOR),
            "Pat": site.token("Pat", Role.READER, ("vm-icount",)),
        }
        hidden = _hide(site.conn, site.lab.tree)
        site.conn.commit()
        yield World(site=site, hidden=hidden, people=people)


@pytest.mark.parametrize("who", ["", "Bob", "Pat"])
def test_no_answer_has_anything_private_to_others(world: World, who: str) -> None:
    shown = addresses(world.site, world.hidden, world.hidden.numbers)
    leaks, answered = [], 0
    for address in shown if who == "" else [one for one in shown if one.endswith(".json")]:
        answer = read(world.site, address, world.people[who])
        answered += answer.status_code == 200
        if leaked := leak(world.hidden, address, answer):
            leaks.append(f"{address}: {leaked}")
    assert not leaks, f"{len(leaks)} leaks\n" + "\n\n".join(leaks[:40])
    assert answered > 15


def test_those_to_whom_it_is_private_see_what_an_operator_sees(world: World) -> None:
    found = 0
    for address in addresses(world.site, world.hidden, world.hidden.numbers):
        if address.endswith(".json"):
            ada, opal = (read(world.site, address, world.people[who]) for who in ("Ada", "Opal"))
            if ada.status_code == 403:  # for moderators and operators
                continue
            found += bool(leak(world.hidden, address, ada))
            assert ada.status_code == opal.status_code, address
            assert bool(LEAK.search(ada.text)) == bool(LEAK.search(opal.text)), address
    assert found > 15


def test_an_id_that_is_private_is_answered_as_one_that_nothing_has(world: World) -> None:
    asked, bob = 0, world.people["Bob"]
    for kind, numbers in world.hidden.numbers.items():
        for number in numbers:
            paths = [f"/{kind}/{{}}", f"/{kind}/{{}}.json", "/raw/{}/manifest.json"]
            if kind in ids.TABLES:
                paths += [f"/{kind}/{{}}/{name}" for name in ("table.csv", "progress")]
            for path in paths if kind != "variant" else ["/variant/{}.json"]:
                id, none = ids.show(kind, number), ids.show(kind, 9999)
                real, unknown = (
                    world.site.client.get(path.format(one), headers=bob) for one in (id, none)
                )
                assert real.status_code == unknown.status_code == 404, (path, real.text)
                assert real.text.replace(id, none) == unknown.text, path
                asked += 1
            for act in ("cancel", "extend", "publish") if kind in ids.TABLES else ():
                body = {"boots": 1} if act == "extend" else {}
                answers = [
                    world.site.client.post(f"/{kind}/{one}/{act}", headers=bob, json=body)
                    for one in (id, none)
                ]
                assert [one.status_code for one in answers] == [404, 404], answers[0].text
                assert answers[0].text.replace(id, none) == answers[1].text
    assert asked > 10


def test_grafana_sees_nothing_private_whatever_it_sets(world: World) -> None:
    """Its users write queries of their own; the owner of the views reads as much as they do."""
    with world.site.engine.connect() as conn:
        conn.exec_driver_sql("SET LOCAL swingbot.person = 'Ada'")
        views = conn.exec_driver_sql(
            "SELECT viewname FROM pg_views WHERE schemaname = 'swingbot' AND viewname LIKE 'v\\_%%'"
        )
        for view in views.scalars().all():
            rows = str(conn.exec_driver_sql(f"SELECT * FROM swingbot.{view}").all())
            assert not LEAK.search(rows), view
            assert not [one for one in world.hidden.commits if one in rows], view


def test_the_counts_of_a_monitoring_system_are_those_of_all_orders(world: World) -> None:
    """Whoever asks first: the numbers are read once for several."""
    ready = "SELECT count(*) FROM orders WHERE kind = 'boot' AND state = 'ready'"
    with world.site.engine.connect() as conn:
        wanted = conn.exec_driver_sql(ready).scalar_one()
    text = world.site.client.get("/metrics").text
    [line] = [one for one in text.splitlines() if one.startswith(BOOTS_READY)]
    assert float(line.removeprefix(BOOTS_READY)) == wanted


def test_a_table_is_private_until_it_is_published(serve: Serve) -> None:
    site = serve()
    url = f"http://127.0.0.1:{site.web.port}"
    tokens = {
        who: site.web.token(who, Role.SUBMITTER)["Authorization"].split()[1]
        for who in ("Ada", "Bob", "Cy")
    }

    def run(who: str, words: str) -> Result:
        env = {"SWINGBOT_URL": url, "SWINGBOT_TOKEN": tokens[who]}
        return CliRunner().invoke(main, words.split(), env=env)

    wrong = run("Ada", "compare base tip --private-to Bobb")
    assert wrong.exit_code == 2 and "'Bobb' has no token" in wrong.output
    asked = run("Ada", "compare base tip --private-to Bob")
    assert asked.exit_code == 0 and asked.stdout.startswith("c1 is waiting"), asked.output
    assert "c1 is waiting" in run("Ada", "compare base tip --private-to Bob").stdout
    others = run("Cy", "compare base tip")
    assert others.stdout.startswith("c2 is"), "the same request of others is a table of its own"
    for who, seen in {"Ada": True, "Bob": True, "Cy": False}.items():
        assert ("c1" in run(who, "list comparisons").stdout) == seen, who
        assert run(who, "show c1").exit_code == (0 if seen else 2)
    assert "private to Ada, Bob" in run("Ada", "show c1").stdout
    refused = run("Bob", "publish c1")
    assert refused.exit_code == 2 and "c1 is not yours" in refused.output
    assert run("Ada", "publish c1").stdout == "everybody may read c1\n"
    assert "c1" in run("Cy", "list comparisons").stdout
    again = run("Ada", "publish c1")
    assert again.exit_code == 2 and "c1 is not private" in again.output
