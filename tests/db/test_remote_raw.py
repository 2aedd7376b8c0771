"""`swingbot raw` from elsewhere brings what it brings on the service's host, and writes nowhere
else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from swingbot.core.access.roles import Role
from tests.database import fresh
from tests.db.test_raw_results import a_compared_brain, results_tar
from tests.db.test_remote import SERVICE, elsewhere, here, run, stranger
from tests.postgres import Server
from tests.served import Served, served


@contextmanager
def a_measured_service(url: str, place: Path, **environment: str) -> Iterator[tuple[Any, Served]]:
    with (
        a_compared_brain(url, place) as brain,
        served(url, place, filled=False, **environment) as web,
    ):
        yield brain, web


@pytest.fixture(scope="module")
def measured(
    pg: Server, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    with (
        fresh(pg, template) as url,
        a_measured_service(url, tmp_path_factory.mktemp("raw")) as (_, web),
    ):
        yield web


def files(place: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(place)): path.read_bytes()
        for path in place.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("words", ["raw c1", "raw x1 --without-kernels", "raw b1", "raw t1"])
def test_raw_results_from_elsewhere_are_those_of_the_host(
    words: str, measured: Served, tmp_path: Path
) -> None:
    places = [tmp_path / "here" / "out", tmp_path / "away" / "out"]
    on_host, from_elsewhere = (
        run(f"{words} --json --out {place}", env)
        for place, env in zip(places, (here(measured), elsewhere(measured, tmp_path)), strict=True)
    )
    assert from_elsewhere.exit_code == on_host.exit_code, from_elsewhere.output
    assert from_elsewhere.stdout.replace("/away/", "/here/") == on_host.stdout
    assert on_host.exit_code == 0 or from_elsewhere.stderr == on_host.stderr
    assert on_host.exit_code == (2 if words in ("raw b1", "raw t1") else 0)
    assert files(places[1]) == files(places[0])
    again = run(f"{words} --json --out {places[1]}", elsewhere(measured, tmp_path))
    assert '"fetched": 0' in again.output or on_host.exit_code


def test_what_the_store_lost_is_named_in_the_same_words(db_url: str, tmp_path: Path) -> None:
    with a_measured_service(db_url, tmp_path, SWINGBOT_WEB_RAW="token") as (brain, web):
        results_tar(brain).unlink()
        refused = run(f"raw c1 --out {tmp_path / 'no'}", elsewhere(web, tmp_path))
        assert refused.exit_code == 1 and "Then run `swingbot login" in refused.output
        token = web.token("Ada", Role.READER)["Authorization"].split()[1]
        places = [tmp_path / "here" / "out", tmp_path / "away" / "out"]
        on_host = run(f"raw c1 --out {places[0]}", here(web))
        away = run(f"raw c1 --out {places[1]}", elsewhere(web, tmp_path, SWINGBOT_TOKEN=token))
        assert on_host.exit_code == away.exit_code == 1
        assert away.stdout.replace("/away/", "/here/") == on_host.stdout
        told = on_host.stderr.splitlines()[-1]  # before it, progress if it takes long
        assert "x1/results.tar: it is no longer in the artifact store" in told
        assert away.stderr.splitlines()[-1] == told
        assert files(places[1]) == files(places[0])


@pytest.mark.parametrize("path", ["../evil", "/etc/evil", "a//evil", "a/../../evil", "a\nevil", 5])
@pytest.mark.parametrize("key", ["file", "boot", "root"])
def test_a_service_cannot_write_outside_of_the_directory(
    path: Any, key: str, tmp_path: Path
) -> None:
    boot = {
        "id": path if key == "boot" else "x1",
        "runs": [{"result_root": path}] if key == "root" else [],
    }
    named = [{"path": path, "sha256": "0" * 64, "size": 1}] if key == "file" else []
    manifest = json.dumps({"id": "c1", "kind": "comparison", "files": named, "boots": [boot]})
    with stranger(200, SERVICE, manifest.encode()) as (url, _):
        env = {"SWINGBOT_URL": url, "XDG_CONFIG_HOME": str(tmp_path / "home")}
        said = run(f"raw c1 --out {tmp_path / 'deep' / 'out'}", env)
    assert said.exit_code == 1 and "outside of the directory" in said.output
    assert not list(tmp_path.iterdir())
