"""`swingbot raw` from elsewhere brings what it brings on the service's host, and writes nowhere
else."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import Result

from swingbot.core.access.roles import Role
from swingbot.core.raw import tables
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
    boot = A_BOOT | ({"id": path} if key == "boot" else {})
    boot["runs"] = [A_RUN | {"result_root": path}] if key == "root" else []
    named = [{"path": path, "sha256": "0" * 64, "size": 1}] if key == "file" else []
    said = asked({"manifest.json": a_manifest(named, boot)}, tmp_path)
    reason = (
        "outside of the directory" if path != 5 else "something else than the document asked for"
    )
    assert said.exit_code == 1 and reason in said.output
    assert not list(tmp_path.iterdir())


A_RUN: Final = {"unit_job": "u", "run": 0, "status": "ok", "result_root": None}
A_BOOT: Final[dict[str, Any]] = {
    "id": "x1",
    "k": 0,
    "commit": "c",
    "testbox": "t",
    "roles": ["base"],
    "runs": [],
    "facts": {},
    "files": {},
}


def a_manifest(files: list[Any], *boots: Any) -> bytes:
    about = {"id": "c1", "kind": "comparison"}
    return json.dumps(about | {"files": files, "boots": boots}).encode()


def asked(pages: Mapping[str, bytes], tmp_path: Path, options: str = "") -> Result:
    """What `swingbot raw c1` says of a service with these pages below /raw/c1/."""
    answers = {f"/raw/c1/{path}": (200, SERVICE, page) for path, page in pages.items()}
    with stranger(200, SERVICE, answers=answers) as (url, _):
        env = {"SWINGBOT_URL": url, "XDG_CONFIG_HOME": str(tmp_path / "home")}
        return run(f"raw c1 --out {tmp_path / 'deep' / 'out'} {options}", env)


def samples(*roots: str) -> bytes:
    names = ("boot", "testbox", "unit_job", "metric")
    more = {"run": 0, "seq": 0, "value": 1.0}
    rows = ({**dict.fromkeys(names, "x"), **more, "result_root": root} for root in roots)
    return "".join(tables.csv_lines(tables.SAMPLES, rows)).encode()


def results_of_a_guest(*names: str) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name in names:
            entry = tarfile.TarInfo(name)
            entry.size = 4
            tar.addfile(entry, io.BytesIO(b"evil"))
    return archive.getvalue()


@pytest.mark.parametrize("root", ["../evil", "/{tmp}/deep/evil", "a/../../evil"])
def test_no_sample_leads_outside_of_the_directory(root: str, tmp_path: Path) -> None:
    root = root.format(tmp=str(tmp_path).lstrip("/"))
    pages = {"manifest.json": a_manifest([]), "samples.csv": samples("fine", root)}
    said = asked(pages, tmp_path)
    assert said.exit_code == 1 and "outside of the directory" in said.output
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["out"]


def test_no_run_is_written_through_the_link_of_another_one(tmp_path: Path) -> None:
    (tmp_path / "deep" / "home").mkdir(parents=True)
    # a/boot leads to home/ in the directory, so a/boot/boot would lead to the one beside it
    content = results_of_a_guest("u/0/keys")
    sha256 = hashlib.sha256(content).hexdigest()
    roots = {"v": "a", "w": "a/boot", "u": "home/boot"}
    runs = [A_RUN | {"unit_job": job, "result_root": root} for job, root in roots.items()]
    boot = A_BOOT | {"files": {"results.tar": {"sha256": sha256}}, "runs": runs}
    file = {"path": "home/results.tar", "sha256": sha256, "size": len(content)}
    pages = {"manifest.json": a_manifest([file], boot), "home/results.tar": content}
    said = asked({**pages, "samples.csv": samples()}, tmp_path)
    assert said.exit_code == 1 and "through a link" in said.output
    assert not list((tmp_path / "deep" / "home").iterdir())


def test_no_guest_writes_to_the_directory_of_its_boot(tmp_path: Path) -> None:
    content = results_of_a_guest("u/0/fine", "u/0/boot/console.log")
    sha256 = hashlib.sha256(content).hexdigest()
    boot = A_BOOT | {
        "files": {"results.tar": {"sha256": sha256}},
        "runs": [A_RUN | {"result_root": "result/a"}],
    }
    log = {"path": "x1/console.log", "sha256": hashlib.sha256(b"log").hexdigest(), "size": 3}
    file = {"path": "x1/results.tar", "sha256": sha256, "size": len(content)}
    pages = {"manifest.json": a_manifest([log, file], boot), "x1/results.tar": content}
    said = asked({**pages, "x1/console.log": b"log", "samples.csv": samples()}, tmp_path)
    out = tmp_path / "deep" / "out"
    assert said.exit_code == 1 and "through a link" in said.output
    assert (out / "x1" / "console.log").read_bytes() == b"log"
    assert (out / "result" / "a" / "fine").read_bytes() == b"evil"


@pytest.mark.parametrize("words", ["raw c1", "raw x1"])
def test_what_is_too_large_is_refused_before_anything_is_written(
    words: str, measured: Served, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    for env in (here(measured), elsewhere(measured, tmp_path)):
        refused = run(f"{words} --max-size 10K --out {out}", env)
        assert refused.exit_code == 2 and not out.exists(), refused.output
        assert "more than 10.0 KiB: give --max-size" in refused.stderr
        wrong = run(f"{words} --max-size 10X --out {out}", env)
        assert wrong.exit_code == 2 and "write it as 500M or 20G" in wrong.stderr
    said = run(f"{words} --max-size 1G --out {out}", elsewhere(measured, tmp_path))
    assert said.exit_code == 0 and "to unpack; at most 1.0 GiB" in said.stderr
    assert sum(map(len, files(out).values())) < 1 << 30


def test_more_than_the_manifest_says_is_not_written_either(tmp_path: Path) -> None:
    """Samples have no size there, nor have directories and files without content."""
    empty = hashlib.sha256(b"").hexdigest()
    paths = [f"{n}/{'d/' * 30}f" for n in range(9)]
    many = [{"path": path, "sha256": empty, "size": 0} for path in paths]
    for pages in (
        {"manifest.json": a_manifest([]), "samples.csv": samples(*["a"] * 40_000)},
        {"manifest.json": a_manifest(many)} | dict.fromkeys(paths, b""),
    ):
        said = asked(pages, tmp_path, "--max-size 1M")
        assert said.exit_code == 1 and "would have more than 1.0 MiB" in said.stderr, said.output
        written = [path for path in (tmp_path / "deep" / "out").rglob("*") if path.is_file()]
        assert sum(path.stat().st_blocks * 512 for path in written) <= 1 << 20
        shutil.rmtree(tmp_path / "deep")


def test_results_that_many_boots_share_are_counted_for_each(tmp_path: Path) -> None:
    tar = "0" * 64
    file = {"path": "x0/results.tar", "sha256": tar, "size": 300 << 20}
    boots = [A_BOOT | {"id": f"x{n}", "files": {"results.tar": {"sha256": tar}}} for n in range(60)]
    said = asked({"manifest.json": a_manifest([file], *boots)}, tmp_path)
    assert said.exit_code == 2 and "give --max-size 19G" in said.stderr, said.output
    assert not (tmp_path / "deep").exists()


@pytest.mark.parametrize(
    "pages",
    [
        {"manifest.json": a_manifest([{"path": "a", "sha256": "0" * 64, "size": "1"}])},
        {"manifest.json": a_manifest([{"path": "a", "sha256": "0" * 64, "size": -1}])},
        {"manifest.json": a_manifest([{"path": "a", "sha256": "0" * 64}])},
        {"manifest.json": a_manifest([], A_BOOT | {"files": []})},
        {"manifest.json": a_manifest([], A_BOOT | {"facts": 1})},
        {"manifest.json": a_manifest([], {"id": "x1", "runs": []})},
        {"manifest.json": b"[]"},
        {"manifest.json": a_manifest([]), "samples.csv": b"x" * (3 << 20)},
    ],
)
def test_a_service_that_answers_nonsense_gets_a_sentence(
    pages: dict[str, bytes], tmp_path: Path
) -> None:
    said = asked(pages, tmp_path)
    last = said.stderr.splitlines()[-1]
    assert said.exit_code == 1 and last.startswith("swingbot: "), said.output
    assert (
        "something else than the document asked for" in said.stderr
        or "a line has more" in said.stderr
    )


def test_a_file_named_like_one_of_the_export_is_missed_like_others(tmp_path: Path) -> None:
    file = {"path": "SHA256SUMS", "sha256": "0" * 64, "size": 1}
    pages = {"manifest.json": a_manifest([file]), "SHA256SUMS": b"x", "samples.csv": samples()}
    said = asked(pages, tmp_path)
    assert said.exit_code == 1 and "does not match its sha256" in said.stderr, said.exception


@pytest.mark.parametrize(
    ("limit", "rows", "sentence"),
    [
        ("_RUN_VALUES", samples("", "", ""), "a run has more than 2 values"),
        ("_NAMES", samples("").replace(b",0,x,", b",0,,"), "without a name"),
        ("_NAMES", samples("").replace(b",0,x,", b",0," + b"m" * 300 + b","), "without a name"),
    ],
)
def test_a_service_fills_no_memory_with_the_samples_of_a_run(
    limit: str, rows: bytes, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"swingbot.app.remote.http_raw.{limit}", 2)
    said = asked({"manifest.json": a_manifest([]), "samples.csv": rows}, tmp_path)
    assert said.exit_code == 1 and sentence in said.stderr, said.output
    assert said.stderr.splitlines()[-1].startswith("swingbot: ")
