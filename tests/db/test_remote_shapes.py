"""A service of this version that answers with odd shapes gets a sentence, not a traceback."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from swingbot.app.documents import PLURALS
from tests.database import fresh
from tests.db.test_remote import SERVICE, run, stranger
from tests.postgres import Server
from tests.served import Served, served

# Words of a command, and the addresses whose answers it prints.
PRINTED: Final = {
    **{f"list {plural}": f"/{plural}.json" for plural in PLURALS},
    "status": "/status.json",
    "show b{bisection}": "/bisection/b{bisection}.json",
    "show i{incident}": "/incident/i{incident}.json",
    "show r{report}": "/report/r{report}.json",
    "show o{order}": "/order/o{order}.json",
    "show v1": "/variant/v1.json",
    "show x{boot}": "/boot/x{boot}.json",
    "show c{comparison} --json": "/comparison/c{comparison}.json",
    "wait c{comparison} --exit-code": "/comparison/c{comparison}.json",
    "wait b{bisection}": "/bisection/b{bisection}.json",
    "wait --idle --timeout 0": "/status.json",
    "incident list": "/incidents.json",
    "incident show i{incident}": "/incident/i{incident}.json",
    "report list": "/reports.json",
    "report classes": "/moderation.json",
    "report show r{report}": "/report/r{report}.json",
    "proof show i{incident}": "/incident/i{incident}.json",
    "results": "/results.json",
    "history {metric} --testbox {testbox}": "/metric.json",
    "raw x{boot} --out {out}": "/raw/x{boot}/manifest.json",
    "login": "/login.json",
}
# Those that change something or need what this lab lacks; their answers are made up here.
CHANGING: Final = (
    "compare base tip --tree t --yes",
    "experiment base..tip --yes",
    "extend e1 --boots 1 --yes",
    "cancel c1",
    "jobs cover mm/a.c --tree t",
    "incident close i1",
    "report release r1",
    "report readdress r1",
    "report stop",
    "proof run i1",
    "proof cost i1",
    "reproduce c1 --out {out}",
)
SHAPES: Final[Sequence[Any]] = (
    *(None, [], {}, "", "x", 0, -1, True, 1e308, -1e308, 1 << 63, [None], ["x"], [[]], [{}]),
    *({"id": None}, {"a": {"b": [1e308]}}, [{"id": 5}], {"missing": 5}, {"rows": "x"}),
)
COUNT: Final = 25  # of places in a document where a value is odd
TEXTS: Final = (b"1e999", b"[NaN]", b'{"a": -Infinity}', b"9" * 4000, b"9" * 5000)


@pytest.fixture(scope="module")
def web(pg: Server, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with fresh(pg, template) as url, served(url, tmp_path_factory.mktemp("shapes")) as running:
        yield running


def told(words: str, address: str, body: bytes, tmp_path: Path) -> str:
    """What a command says that is answered by `body`: something, and no traceback."""
    with stranger(200, SERVICE, body) as (url, _):
        env = {"SWINGBOT_URL": url, "SWINGBOT_TOKEN": "x", "XDG_CONFIG_HOME": str(tmp_path)}
        said = run(words, env)
    known = said.exception is None or isinstance(said.exception, SystemExit)
    assert known and said.exit_code in (0, 1, 2, 3, 4), (words, body[:200], said.exc_info)
    assert said.exit_code in (0, 3, 4) or said.stderr, (words, body[:200])
    return str(said.output)


@pytest.mark.parametrize("words", [*PRINTED, *CHANGING])
def test_an_answer_of_another_shape_gets_a_sentence(
    words: str, web: Served, tmp_path: Path
) -> None:
    typed = named(words, web, tmp_path)
    for body in (*(json.dumps(shape).encode() for shape in SHAPES), *TEXTS):
        told(typed, "", body, tmp_path)


def named(words: str, web: Served, tmp_path: Path) -> str:
    metric, testbox = web.client.get("/metrics.json").json()[0], ""
    metric, testbox = metric["metric"], metric["testbox"]
    more = {"metric": metric, "testbox": testbox, "out": tmp_path / "out"}
    return words.format(**dataclasses.asdict(web.lab), **more)


@pytest.mark.parametrize("words", PRINTED)
def test_a_document_with_one_odd_value_gets_a_sentence(
    words: str, web: Served, tmp_path: Path
) -> None:
    typed = named(words, web, tmp_path)
    address = named(PRINTED[words], web, tmp_path)
    query = {"metric": typed.split()[1]} if typed.startswith("history") else {}
    document = web.client.get(address, params=query).json()
    chance, places = random.Random(words), list(_places(document))
    for place in chance.sample(places, min(len(places), COUNT)):
        odd = _with(document, place, chance.choice(SHAPES))
        told(typed, address, json.dumps(odd).encode(), tmp_path)


def _places(value: Any) -> Iterator[tuple[Any, ...]]:
    listed = enumerate(value) if isinstance(value, list) else ()
    for key, item in value.items() if isinstance(value, dict) else listed:
        yield (key,)
        yield from ((key, *more) for more in _places(item))


def _with(value: Any, place: tuple[Any, ...], odd: Any) -> Any:
    """A copy of a document with another value at one place."""
    copy = value.copy()
    copy[place[0]] = odd if len(place) == 1 else _with(value[place[0]], place[1:], odd)
    return copy
