"""A token limited to testbox groups reads what these measured, at every address, and no more."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from starlette.routing import Route

from swingbot.app.cli import main
from swingbot.core.access.roles import Person, Role
from swingbot.core.model import ids
from swingbot.service.visible import VISIBLE, Visible
from swingbot.web.api import by_group
from tests import builders as make
from tests.database import fresh
from tests.db.test_fuzz_routes import application
from tests.fakes.mail import brain_environment
from tests.hidden import (
    LEAK,
    LEVEL,
    METRIC,
    OWN,
    PARAMETER,
    UNIT_JOB,
    WORD,
    Hidden,
    addresses,
    leak,
    read,
)
from tests.postgres import Server
from tests.served import Served, served

TOKEN_IN: Final = {
    "SWINGBOT_WEB_READ": "token",
    "SWINGBOT_WEB_METRICS": "token",
    "SWINGBOT_WEB_RATE": "0",
    "SWINGBOT_WEB_WRITE_RATE": "0",
}


def _hide(conn: sa.Connection, tree: int) -> Hidden:
    """Let another group measure kernels of its own in the same tree."""
    other = make.a_testbox(conn, f"{WORD}-box", unit_job=UNIT_JOB, state="quarantined", reason=WORD)
    visible = make.a_testbox(conn)
    conn.execute(
        sa.text("UPDATE tree SET testboxes = testboxes || CAST(:name AS text)"),
        {"name": other.name},
    )
    kernels = [
        make.a_kernel(conn, tree, f"{WORD}{at}", subject=f"{WORD}: change {at}") for at in range(3)
    ]
    base, head = kernels[0], kernels[-1]
    hidden = Hidden(commits=[kernel.commit for kernel in kernels], build_key=head.build_key)
    tables = []
    for kind in ("asked", "experiment"):
        table = make.a_comparison(conn, tree, base, head, [other], kind=kind)
        make.a_row(
            conn, table, other, METRIC, base=[LEVEL] * 3, head=[LEVEL * 2] * 3, unit_job=UNIT_JOB
        )
        tables.append(table)
    shared = [make.a_kernel(conn, tree, f"shared{at}") for at in range(2)]
    both = make.a_comparison(
        conn, tree, shared[0], shared[1], [visible, other], reason=WORD, status="failed"
    )
    boots = [
        make.a_boot(
            conn, other, kernel, k=k, values={(UNIT_JOB, METRIC): [LEVEL] * 3}, comparison=tables[0]
        )
        for kernel in kernels
        for k in range(3)
    ]
    swing = make.a_swing(conn, tables[0], other, METRIC)
    culprit = {"commit": head.commit, "subject": f"{WORD}: change 2"}
    conclusion = {
        "status": "culprit",
        "culprit": culprit,
        "culprits": [culprit | {"probability": 0.99, "change_pct": -18.1}],
        "probability": 0.99,
        "change_pct": -18.1,
        "interval_pct": [-19.0, -17.0],
        "candidates": [],
    }
    searches = [
        make.a_bisection(
            conn, tree, other, kernels, metric=METRIC, unit_job=UNIT_JOB, status="culprit",
            conclusion=conclusion,
        ),
        make.a_bisection(conn, tree, other, kernels, metric=METRIC, unit_job=UNIT_JOB),
    ]  # fmt: skip
    incident = make.an_incident(conn, tree, head, bisections=searches[:1], comparison=tables[0])
    report = make.a_report(conn, incident, body=f"{WORD} {LEVEL}", subject=WORD)
    order = make.an_order(conn, head, other, k=9, state="ready", comparison=tables[0])
    conn.execute(
        sa.text("INSERT INTO alert (kind, testbox, reason) VALUES ('lost', :name, :name)"),
        {"name": other.name},
    )
    conn.execute(
        sa.text(
            "INSERT INTO testbox_event (testbox, was, state, why)"
            " VALUES (:name, 'idle', 'lost', :name)"
        ),
        {"name": other.name},
    )
    conn.execute(
        sa.text(
            "INSERT INTO asked (comparison, who, token, testbox_seconds) VALUES (:c, :who, 1, 1)"
        ),
        {"c": tables[0], "who": f"{WORD} Quentin"},
    )
    assert swing
    variants = [kernel.variant for kernel in kernels]
    build = conn.execute(
        sa.text("SELECT id FROM orders WHERE kind = 'build' AND build_key = :key"),
        {"key": head.build_key},
    ).scalar_one()
    hidden.numbers = {
        "comparison": [tables[0], both],
        "experiment": [tables[1]],
        "bisection": searches,
        "incident": [incident],
        "report": [report],
        "order": [order, build],
        "boot": boots[-1:],
        "variant": variants[-1:],
    }
    hidden.order = order
    return hidden


@dataclass(frozen=True, kw_only=True)
class World:
    site: Served
    hidden: Hidden
    scoped: dict[str, str]
    changes: dict[str, str]  # of both groups, without levels
    operator: dict[str, str]

    def get(self, address: str, **headers: str) -> httpx.Response:
        return self.site.client.get(address, headers=self.scoped | headers)


@pytest.fixture(scope="module")
def world(pg: Server, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    place = tmp_path_factory.mktemp("groups")
    with fresh(pg, template) as url, served(url, place, filled=True, **TOKEN_IN) as site:
        hidden = _hide(site.conn, site.lab.tree)
        site.conn.commit()
        yield World(
            site=site,
            hidden=hidden,
            scoped=site.token("Pat", Role.READER, (OWN,)),
            changes=site.token("Cy", Role.READER, (OWN, f"{WORD}-box"), levels=False),
            operator=site.token("Opal", Role.OPERATOR),
        )


def _own(site: Served) -> dict[str, list[int]]:
    lab = site.lab
    variants = site.conn.execute(sa.text("SELECT max(variant) FROM bisection_point WHERE"
                                         f" bisection = {lab.bisection}")).scalars()  # fmt: skip
    return {
        "comparison": [lab.comparison],
        "experiment": [],
        "bisection": [lab.bisection, lab.running_bisection],
        "incident": [lab.incident],
        "report": [lab.report],
        "order": [lab.order],
        "boot": [lab.boot, lab.panicked],
        "variant": list(variants),
    }


def test_no_answer_has_anything_of_another_group(world: World) -> None:
    numbers, own = world.hidden.numbers, _own(world.site)
    both = {kind: [*own[kind], *numbers[kind]] for kind in numbers}
    leaks, answered, control = [], 0, 0
    for address in addresses(world.site, world.hidden, both):
        answer = read(world.site, address, world.scoped)
        answered += answer.status_code == 200
        if leaked := leak(world.hidden, address, answer):
            leaks.append(f"{address}: {leaked}")
        if address.endswith(".json"):
            control += bool(leak(world.hidden, address, read(world.site, address, world.operator)))
    assert not leaks, f"{len(leaks)} leaks\n" + "\n\n".join(leaks[:40])
    assert answered > 60 and control > 20, (answered, control)


def test_an_id_of_another_group_is_answered_as_one_that_nothing_has(world: World) -> None:
    asked = 0
    for kind, numbers in world.hidden.numbers.items():
        for number in numbers:
            for path in _of_one(kind):
                id, none = ids.show(kind, number), ids.show(kind, 9999)
                real = world.get(path.format(id))
                unknown = world.get(path.format(none))
                assert real.status_code == unknown.status_code, (path, real.text)
                assert real.status_code in (403, 404), (path, real.text)
                assert real.text.replace(id, none) == unknown.text, path
                asked += real.status_code == 404
    assert asked > 40


def _of_one(kind: str) -> list[str]:
    paths = [f"/{kind}/{{}}", f"/{kind}/{{}}.json", "/raw/{}/", "/raw/{}/manifest.json"]
    if kind in ids.REQUESTS:
        paths += [f"/{kind}/{{}}/progress.json"]
    if kind in ids.TABLES:
        paths += [f"/{kind}/{{}}/{name}" for name in ("table.csv", "show.txt", "mail.txt")]
    return [] if kind == "variant" else paths


def test_what_testboxes_of_the_group_measured_is_served(world: World) -> None:
    lab = world.site.lab
    for address in (
        f"/comparison/c{lab.comparison}.json",
        f"/comparison/c{lab.comparison}",
        f"/comparison/c{lab.comparison}/table.csv",
        f"/bisection/b{lab.bisection}.json",
        f"/incident/i{lab.incident}.json",
        f"/incident/i{lab.incident}",
        f"/boot/x{lab.boot}.json",
        f"/raw/x{lab.boot}/manifest.json",
        f"/raw/x{lab.boot}/samples.csv",
        f"/testbox/{OWN}.json",
        "/comparisons.json",
        "/testboxes",
        "/search.json?q=hackbench",
        f"/metric/mm-demo/{OWN}/{make.UNIT_JOB}/{make.METRIC}.json",
    ):
        mine, all_ = world.get(address), world.site.client.get(address, headers=world.operator)
        assert mine.status_code == all_.status_code == 200, (address, mine.text)
    table = f"/comparison/c{lab.comparison}/table.csv"
    assert world.get(table).text == world.site.client.get(table, headers=world.operator).text
    assert world.get("/login.json").json() == {
        "who": "Pat",
        "role": "reader",
        "groups": [OWN],
        "levels": True,
    }


def test_every_change_is_refused(world: World) -> None:
    refused, client = 0, world.site.client
    for route in application(world.site).routes:
        if not isinstance(route, Route) or "POST" not in (route.methods or ()):
            continue
        path = PARAMETER.sub("c1", route.path)
        if path not in ("/login", "/logout"):
            answer = client.post(path, json={}, headers=world.scoped)
            assert answer.status_code == 403, (path, answer.text)
            assert "only for testboxes of vm-icount" in answer.text, path
            refused += 1
    assert refused > 15


@contextmanager
def visible(groups: Sequence[str], *, levels: bool = True) -> Iterator[None]:
    before = VISIBLE.set(Visible(groups=groups, levels=levels))
    try:
        yield
    finally:
        VISIBLE.reset(before)


def test_the_database_refuses_what_is_not_declared(world: World) -> None:
    with world.site.engine.connect() as conn, visible((OWN,)):
        for table in ("access_token", "web_session", "access_event", "patch", "branch_patch"):
            with pytest.raises(sa.exc.ProgrammingError, match="permission denied"):
                conn.execute(sa.text(f"SELECT * FROM {table}"))
            conn.rollback()
        for statement in ("DELETE FROM boot", "UPDATE testbox SET state = 'gone'"):
            with pytest.raises(sa.exc.ProgrammingError, match="permission denied"):
                conn.execute(sa.text(statement))
            conn.rollback()
        read, views = 0, "SELECT viewname FROM pg_views WHERE schemaname = 'swingbot'"
        for view in conn.execute(sa.text(views)).scalars().all():
            with suppress(sa.exc.ProgrammingError):  # one that reads a table as above
                rows = conn.execute(sa.text(f"SELECT * FROM {view}")).all()
                assert not LEAK.search(str(rows)), view
                read += 1
            conn.rollback()
        assert read > 15


# Where levels are: of what was measured, of machines, and of what rows state of them.
LEVELS: Final = """
SELECT value FROM sample UNION SELECT mean FROM boot_mean UNION SELECT seconds FROM boot
UNION SELECT (side->>key)::double precision FROM comparison_row r
  CROSS JOIN LATERAL (VALUES (r.detail->'base'), (r.detail->'head')) s(side)
  CROSS JOIN LATERAL (VALUES ('mean'), ('stddev')) k(key)
UNION SELECT unnest("values") FROM observation
"""
_NUMBER: Final = re.compile(r"(?<![0-9a-f])[0-9][0-9, ]*(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?(?![0-9a-f])")
FACTS: Final = re.compile(r"QEMU|q35|512M|vcpu|emulated|microcode|\bnr_", re.IGNORECASE)


def _spellings(level: float) -> set[str]:
    """How a page, a table or a plot may print a level; those of fewer than four digits are of
    anything.
    """
    rounded = {f"{level:.{digits}f}" for digits in range(4)} | {f"{level:.{n}g}" for n in (4, 5, 6)}
    all_ = rounded | {
        repr(level),
        str(round(level)),
        f"{level:,.0f}",
        f"{level:,.0f}".replace(",", " "),
    }
    return {one for one in all_ if sum(letter.isdigit() for letter in one.strip("0.")) >= 4}


def test_a_token_without_levels_gets_none_at_any_address(world: World) -> None:
    levels = world.site.conn.execute(sa.text(LEVELS)).scalars().all()
    spelled = {one for level in levels if level is not None for one in _spellings(abs(level))}
    assert len(spelled) > 50 and f"{LEVEL:.0f}" in spelled
    own, numbers = _own(world.site), world.hidden.numbers
    both = {kind: [*own[kind], *numbers[kind]] for kind in numbers}
    answered, leaks, control = set(), [], 0
    for address in dict.fromkeys(addresses(world.site, world.hidden, both)):
        answer = read(world.site, address, world.changes)
        assert answer.status_code in (200, 400, 403, 404), (address, answer.text)
        shown = _NUMBER.findall(f"{answer.headers} {answer.text}")
        if answer.status_code == 200:
            answered.add(address.split("?")[0].split("/")[1].removesuffix(".json"))
        facts = [] if address.startswith("/api/") else FACTS.findall(answer.text)
        if found := [*spelled.intersection(shown), *facts]:
            leaks.append(f"{address}: {found[:5]}")
        if address.startswith("/comparison/") and address.endswith(".json"):
            full = read(world.site, address, world.operator).text
            control += any(one in full for one in spelled)
    assert not leaks, leaks
    assert control > 2
    assert answered == {
        *("comparison", "comparisons", "experiment", "experiments"),
        *("login", "favicon.ico", "robots.txt", "install", "api", "docs"),
        "healthz",  # which everybody may read
    }, answered


def test_a_token_without_levels_sees_by_how_many_percent_a_table_moved(world: World) -> None:
    lab, client = world.site.lab, world.site.client
    path = f"/comparison/c{lab.comparison}"
    full = client.get(f"{path}.json", headers=world.operator).json()
    mine = client.get(f"{path}.json", headers=world.changes).json()
    headline = {row["metric"]: row for row in full["rows"] if row["headline"]}
    assert mine["rows"] and {row["metric"] for row in mine["rows"]} == headline.keys()
    for row in mine["rows"]:
        whole = headline[row["metric"]]
        assert row["change_pct"] == round(whole["change_pct"], 1)
        assert row["verdict"] == whole["verdict"]
    page = client.get(path, headers=world.changes)
    assert page.status_code == 200 and f"{mine['rows'][0]['change_pct']:+.1f}" in page.text.replace(
        "−", "-"
    )
    (line, *_) = client.get("/comparisons.json?status=done", headers=world.changes).json()
    assert line["worse"] + line["better"] + line["same"] >= 0 and "headline" not in line
    refused = client.get(f"/boot/x{lab.boot}.json", headers=world.changes)
    assert refused.status_code == 403 and "only for changes in percent" in refused.json()["detail"]


def test_the_database_has_no_levels_for_such_a_token(world: World) -> None:
    tables = (
        "SELECT schemaname, tablename FROM pg_tables WHERE schemaname IN ('swingbot', 'public')"
    )
    views = "SELECT schemaname, viewname FROM pg_views WHERE schemaname LIKE 'swingbot%'"
    with world.site.engine.connect() as conn:
        every = conn.execute(sa.text(f"{tables} UNION {views}")).all()
    readable = set()
    with world.site.engine.connect() as conn, visible((OWN, f"{WORD}-box"), levels=False):
        for schema, name in every:
            with suppress(sa.exc.ProgrammingError):
                conn.execute(sa.text(f'SELECT * FROM {schema}."{name}"'))
                readable.add(name)
            conn.rollback()
    assert readable == {"changed_row", "changed_table"}


def test_requests_of_others_take_no_role(world: World) -> None:
    seen: list[str] = []
    sa.event.listen(
        world.site.engine, "before_cursor_execute", lambda *given: seen.append(given[2])
    )
    address = f"/comparison/c{world.site.lab.comparison}.json"
    assert world.site.client.get(address, headers=world.operator).status_code == 200
    assert seen and not [one for one in seen if "set_config" in one]
    assert world.get(address).status_code == 200
    assert [one for one in seen if "set_config('role'" in one]


def test_a_session_of_such_a_token_has_the_same_limits(world: World) -> None:
    token = world.scoped["Authorization"].removeprefix("Bearer ")
    with httpx.Client(base_url=world.site.client.base_url) as browser:
        signed = browser.post("/login", data={"key": token})
        assert signed.status_code == 303
        number = world.hidden.numbers["comparison"][0]
        assert browser.get(f"/comparison/c{number}").status_code == 404
        assert browser.get("/comparisons").status_code == 200
        assert browser.get("/reports").status_code == 403


@pytest.mark.parametrize(
    ("words", "open_", "sentence"),
    [
        (("--role", "reader", "--group", "none"), False, "no testbox has the group 'none'; groups"),
        (("--role", "reader", "--changes-only"), False, "--changes-only needs --group"),
        (("--role", "submitter", "--group", OWN), False, "--group limits the role reader only"),
        (("--role", "reader", "--group", OWN), True, "everybody can read the pages"),
    ],
)
def test_groups_that_make_no_sense_are_refused(
    world: World, tmp_path: Path, words: tuple[str, ...], open_: bool, sentence: str
) -> None:
    said = _create(world, tmp_path, *words, **({"SWINGBOT_WEB_READ": "open"} if open_ else {}))
    assert said.exit_code == 2 and sentence in said.output, said.output
    assert "none" not in words or OWN in said.output


def test_the_groups_of_a_token_are_shown(world: World, tmp_path: Path) -> None:
    said = _create(world, tmp_path, "--role", "reader", "--group", OWN)
    assert said.exit_code == 0, said.output
    assert json.loads(said.stdout)["groups"] == [OWN]
    client = world.site.client
    rows = client.get("/tokens.json", headers=world.operator).json()
    assert [row["groups"] for row in rows if row["who"] == "Pia"] == [[OWN]]
    with httpx.Client(base_url=client.base_url) as browser:
        browser.post("/login", data={"key": world.operator["Authorization"].split()[1]})
        assert f">{OWN}</td>" in browser.get("/tokens").text


def _create(world: World, place: Path, *words: str, **more: str) -> Any:
    url = world.site.engine.url.render_as_string(hide_password=False)
    environment = brain_environment(place / "state", url) | TOKEN_IN | more
    return CliRunner().invoke(main, ["token", "create", "Pia", *words, "--json"], env=environment)


def test_addresses_are_refused_until_they_are_declared() -> None:
    few = Person(who="Pat", role=Role.READER, token=2, groups=(OWN,))
    changes = replace(few, levels=False)
    assert by_group.answers(few, "HEAD", "/comparisons")
    assert by_group.answers(few, "GET", "/boot/x1.json")
    assert by_group.answers(changes, "GET", "/comparison/c1.json")
    assert not by_group.answers(changes, "GET", "/boot/x1.json")
    for method, path in (
        ("GET", "/comparison/c1/progress"),
        ("GET", "/comparison/c1/reproduce.json"),
        ("GET", "/report/r1/mail.txt"),
        ("GET", "/report/r1"),
        ("GET", "/new"),
        ("GET", "/metrics"),
        ("GET", "/artifacts/" + "0" * 64),
        ("DELETE", "/comparisons"),
        ("POST", "/compare"),
    ):
        assert not by_group.answers(few, method, path), path
        assert not by_group.answers(changes, method, path), path
