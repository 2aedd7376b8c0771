"""A table as KCIDB JSON, judged by KCIDB's own library."""

from __future__ import annotations

import json
from collections import Counter

import kcidb_io
import sqlalchemy as sa
from click.testing import CliRunner

from swingbot.app.cli import main
from tests.fakelinux import FakeCommit
from tests.fakes.brain import Brain
from tests.fakes.loop import METRIC

ODD = "\x01'\u202e\ud7ff"


def test_kernels_boots_and_levels_of_an_experiment(
    brain: Brain, environment: dict[str, str]
) -> None:
    base = brain.base
    brain.watch(base)
    commits = brain.commit(FakeCommit(speed=80), FakeCommit(kind="broken"), FakeCommit(speed=100))
    brain.poll()

    def run(*words: str) -> str:
        said = CliRunner().invoke(main, words, env=environment)
        assert said.exit_code == 0, said.output
        return said.stdout

    ask = ("experiment", "base..tip", "--against", "base", "--yes", "--json")
    table = json.loads(run(*ask))["id"]
    brain.run()
    with brain.engine.begin() as conn:
        odd = "UPDATE variant SET subject = :odd, compiler = compiler || :odd"
        conn.execute(sa.text(odd), {"odd": ODD})
    document = json.loads(run("kcidb", table, "--origin", "my_lab"))

    schema = kcidb_io.schema.LATEST
    assert document["version"] == {"major": schema.major, "minor": schema.minor}
    assert schema.is_compatible(document)
    schema.validate(document)
    for kind in ("checkouts", "builds", "tests"):
        ids = [one["id"] for one in document[kind]]
        assert len(ids) == len(set(ids)) and all(id.startswith("my_lab:") for id in ids), kind
    named = {one["git_commit_hash"]: one["id"] for one in document["checkouts"]}
    assert named.keys() == {base, *commits}
    builds = {one["checkout_id"]: one for one in document["builds"]}
    assert builds[named[commits[1]]]["status"] == "FAIL"
    assert builds[named[commits[0]]]["status"] == "PASS"
    boots = [one for one in document["tests"] if one["path"] == "boot"]
    listed = {one["id"] for one in json.loads(run("show", table, "--json"))["boot_list"]}
    assert {one["id"].rpartition("/")[2] for one in boots} == listed
    levels = {one["build_id"]: one for one in document["tests"] if one["path"] == METRIC}
    slow, same = (levels[builds[named[commit]]["id"]] for commit in (commits[0], commits[2]))
    first = levels[builds[named[base]]["id"]]
    assert (slow["status"], same["status"], first["status"]) == ("FAIL", "PASS", "DONE")
    assert round(slow["number"]["value"] / first["number"]["value"], 2) == 0.8
    assert slow["number"]["unit"] == "faults/s"
    (compared,) = slow["misc"]["compared"]
    assert compared["build_id"] == first["build_id"] and round(compared["change_pct"]) == -20
    assert Counter(one["build_id"] for one in document["tests"]).keys() <= {
        one["id"] for one in document["builds"]
    }
