"""Announced compilers as a person meets them: command, pages, and a tree that is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from swingbot.adapters.artifacts import ArtifactDirectory
from swingbot.app.cli import main
from swingbot.app.wiring import forget_workers
from swingbot.core.table.layout import Axis
from swingbot.service.ports import RequestError
from swingbot.service.table.kernels import KernelRequest
from swingbot.service.table.request import TableRequest
from swingbot.web.app import make_app
from swingbot_db import read
from swingbot_jobs.contract.compiler import Compiler
from tests.fakes.brain import Brain
from tests.fakes.kernels import kept_by
from tests.fakes.mail import brain_environment
from tests.table_requests import plan_table, request_table

HOSTILE = "<script>alert('gcc')</script>"
GCC = Compiler(name="gcc", version="gcc (Debian 12.2.0-14+deb12u1) 12.2.0")
CLANG = Compiler(name="clang-14", version=HOSTILE, problem="ld.lld-14 not found")


def announce(brain: Brain, worker: str, *compilers: Compiler) -> None:
    with brain.lab.transaction("announce") as tx:
        tx.compilers.announce(worker, compilers)


def swingbot(brain: Brain, *words: str) -> str:
    environment = brain_environment(Path(brain.settings.paths.state), brain.settings.db.url)
    done = CliRunner().invoke(main, words, env=environment)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_command_lists_what_each_worker_has(brain: Brain) -> None:
    assert "no build worker has announced" in swingbot(brain, "compilers")
    announce(brain, "builder", GCC, CLANG)
    lines = swingbot(brain, "compilers").splitlines()
    assert lines[0].split() == ["WORKER", "COMPILER", "VERSION", "STATE"]
    assert "ld.lld-14 not found" in lines[1]
    assert GCC.version in lines[2] and lines[2].endswith("builds kernels")
    rows = json.loads(swingbot(brain, "compilers", "--json"))
    assert [(row["worker"], row["name"], row["problem"]) for row in rows] == [
        ("builder", "clang-14", "ld.lld-14 not found"),
        ("builder", "gcc", None),
    ]


def test_the_pages_show_them_and_run_nothing_that_a_worker_said(brain: Brain) -> None:
    announce(brain, "builder", GCC, CLANG)
    app = make_app(
        brain.settings,
        brain.engine,
        read,
        kept_by(ArtifactDirectory(brain.settings.artifacts).open),
    )
    with TestClient(app) as client:
        for path in ("/testboxes", "/compilers"):
            text = client.get(path).text
            assert "gcc (Debian 12.2.0-14+deb12u1) 12.2.0" in text
            assert "ld.lld-14 not found" in text
            assert HOSTILE not in text
        (gcc,) = client.get("/compilers.json?name=gcc").json()
        assert (gcc["worker"], gcc["version"]) == ("builder", GCC.version)
        assert client.get("/compilers?colour=red").status_code == 400


def test_a_tree_with_a_compiler_that_no_worker_has_is_not_added(brain: Brain) -> None:
    announce(brain, "builder", GCC, CLANG)
    base = brain.base
    with pytest.raises(RequestError, match="no build worker has gcc-11; available compilers: gcc$"):
        brain.watch(base, compiler="gcc-11")
    with pytest.raises(RequestError, match=r"clang-14 cannot build.*builder: ld.lld-14 not found"):
        brain.watch(base, compiler="clang-14")
    with brain.lab.transaction("read") as tx:
        assert tx.trees.all() == []
    brain.watch(base, compiler="gcc")


def test_an_experiment_with_a_compiler_that_no_worker_has_is_not_queued(brain: Brain) -> None:
    announce(brain, "builder", GCC, Compiler(name="gcc-12", version="12.2.0"))
    base = brain.base
    brain.watch(base)
    asked = TableRequest(
        kernels=KernelRequest(base=base),
        tree="fake",
        axes=[Axis(name="compiler", values=(("gcc-12", "gcc-12"), ("gcc-11", "gcc-11")))],
        against=("first",),
    )
    with pytest.raises(RequestError, match="no build worker has gcc-11; .*: gcc, gcc-12$"):
        request_table(brain.lab, asked)
    assert brain.count("variant") == 0
    announce(brain, "builder", GCC, *(Compiler(name=n, version=n) for n in ("gcc-11", "gcc-12")))
    planned = plan_table(brain.lab, asked)
    assert [variant.compiler for variant in planned.variants] == ["gcc-12", "gcc-11"]


def test_a_worker_that_is_no_longer_in_the_settings_is_forgotten(brain: Brain) -> None:
    announce(brain, "builder", GCC)
    announce(brain, "retired", CLANG)
    forget_workers(brain.settings, brain.lab)
    assert {row["worker"] for row in json.loads(swingbot(brain, "compilers", "--json"))} == {
        "builder"
    }
