"""A report's kit, from rows and artifacts to bytes: whole or not at all, the same twice, and
clear about what is gone."""

from __future__ import annotations

import functools
import gzip
import hashlib
import io
import json
import resource
import stat
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result
from starlette.testclient import TestClient

from swingbot.adapters.kernel_reader import ChildKernelRecords
from swingbot.app import address, kit_file
from swingbot.app.cli import main
from swingbot.app.kit_file import unpack
from swingbot.app.settings import load, with_place
from swingbot.app.sheets import csv_pieces, printed, shown
from swingbot.core.model.artifact import ArtifactError
from swingbot.core.model.lookup import NotFound
from swingbot.core.report.table.formats import FORMS
from swingbot.core.reproduce import Kit, members
from swingbot.web.app import make_app
from swingbot.web.pages import tables
from swingbot_db import read
from swingbot_worker.rootfs import contents, cpio
from swingbot_worker.rootfs.programs import Binary
from tests import builders as make
from tests.fakes.kernels import kept_by
from tests.kits import KitService, kit_service, unpacked
from tests.served import served

JOB = "page-fault-process-1"
METRIC = "page-fault.per_process_ops"


@dataclass(frozen=True, kw_only=True)
class World(KitService):
    boots: list[int]


@pytest.fixture
def world(db_url: str, tmp_path: Path) -> Iterator[World]:
    with kit_service(db_url, tmp_path / "state") as service:
        boots = _report(service.conn, service.put, tmp_path)
        service.conn.commit()
        yield World(**vars(service), boots=boots)


def _report(conn: sa.Connection, put: Callable[[bytes], dict[str, Any]], place: Path) -> list[int]:
    """Report r1 with two boots of each side, their files in the store as a worker would have
    brought them."""
    tree, testbox = make.a_tree(conn), make.a_testbox(conn, unit_job=JOB)
    parent, culprit = make.a_kernel(conn, tree, 1), make.a_kernel(conn, tree, 2)
    for kernel, image in ((parent, b"parent image"), (culprit, b"commit image" * 9)):
        files = {"bzImage": put(image), "config": put(b"CONFIG_MMU=y\n")}
        conn.execute(
            sa.text("UPDATE kernel_build SET files = :files WHERE build_key = :key"),
            {"files": json.dumps(files), "key": kernel.build_key},
        )
    comparison = make.a_comparison(conn, tree, parent, culprit, [testbox])
    boots = [
        make.a_boot(
            conn,
            testbox,
            kernel,
            k=k,
            values={METRIC: [level + k, level + k + 0.5]},
            comparison=comparison,
        )
        for k in range(2)
        for kernel, level in ((parent, 1000.0), (culprit, 900.0))
    ]
    make.a_row(
        conn,
        comparison,
        testbox,
        METRIC,
        base=(1000.25, 1001.25),
        head=(900.25, 901.25),
        verdict="worse",
        unit="faults/s",
        better="higher",
        unit_job=JOB,
    )
    netperf = place / "debian" / "netperf"
    archive = cpio.archive(
        [cpio.file("bin/busybox", b"b" * 77), cpio.file("bin/netperf", b"n" * 999)]
    )
    record, handed_on = contents.record(
        archive,
        [Binary(netperf, "bin/netperf", "netperf_1_amd64")],
        {"bin/netperf": netperf},
        place / "debian",
    )
    put(handed_on)
    files = {
        "qemu.json": put(
            json.dumps(["qemu-system-x86_64", "-kernel", "bzImage", "-initrd", "initrd"]).encode()
        ),
        "job.cpio": put(
            cpio.archive(
                [
                    cpio.file("job/run.sh", b"#!/bin/sh\n"),
                    cpio.file("job/programs/page-fault/run", b"#!/bin/sh\n", executable=True),
                ]
            )
        ),
        "rootfs.json": put(json.dumps(record).encode()),
    }
    facts = json.dumps({"qemu_version": "QEMU emulator version 7.2.22"})
    conn.execute(
        sa.text("UPDATE boot SET files = :files, facts = :facts"),
        {"files": json.dumps(files), "facts": facts},
    )
    conclusion = {
        "status": "culprit",
        "culprit": {"commit": culprit.commit, "subject": "x"},
        "culprits": [],
        "candidates": [],
    }
    bisection = make.a_bisection(
        conn,
        tree,
        testbox,
        [parent, culprit],
        status="culprit",
        conclusion=conclusion,
        metric=METRIC,
    )
    incident = make.an_incident(conn, tree, culprit, bisections=[bisection], comparison=comparison)
    make.a_report(conn, incident)
    return boots


def kit_of(world: World) -> Kit:
    return world.made.kit("r1")


def test_what_the_web_service_hands_out_is_whole_and_every_file_is_as_its_sum_says(
    world: World, tmp_path: Path
) -> None:
    answer = world.client.get("/report/r1/reproduce.tar.gz")
    assert answer.status_code == 200, answer.text
    assert answer.headers["etag"] == f'"{hashlib.sha256(answer.content).hexdigest()}"'
    directory = unpacked(answer.content, tmp_path / "kit")
    assert directory.name == "swingbot-r1"
    assert (
        subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=directory).returncode == 0
    )
    there = {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}
    assert there == {
        file["path"] for file in world.client.get("/report/r1/reproduce.json").json()["files"]
    }
    assert {
        "job/run.sh",
        "job/programs/page-fault/run",
        "job/programs/page-fault/numbers.awk",
        "kernels/commit/bzImage",
        "rootfs/rootfs.cpio",
    } <= there
    (job,) = directory.glob("job/lkp/*.yaml")
    assert "lkp-tests does not have it" in job.read_text()
    numbers = [line.split("\t") for line in (directory / "numbers.tsv").read_text().splitlines()]
    assert [float(row[6]) for row in numbers if row[1] == "parent"] == [
        1000.0,
        1000.5,
        1001.0,
        1001.5,
    ]
    assert (directory / "rootfs" / "left-out").read_text().split()[0] == "bin/netperf"


def test_the_same_report_makes_the_same_bytes(world: World, tmp_path: Path) -> None:
    one, other = tmp_path / "one.tar.gz", tmp_path / "other.tar.gz"
    world.made.write(world.made.kit("r1"), one)
    world.made.write(world.made.kit("r1"), other)
    assert one.read_bytes() == other.read_bytes()


def test_the_scripts_of_a_kit_start_and_say_what_they_need(world: World, tmp_path: Path) -> None:
    world.made.unpack(world.made.kit("r1"), tmp_path / "kit")
    done = subprocess.run(
        ["./reproduce.sh", "--only", "nothing"],
        cwd=tmp_path / "kit",
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (
        1,
        "reproduce.sh: kernel nothing is not in this kit; its kernels are: parent commit\n",
    )
    done = subprocess.run(
        ["./reproduce.sh"],
        cwd=tmp_path / "kit",
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "QEMU": "no-such-qemu"},
    )
    assert (done.returncode, "no-such-qemu is not installed; install it" in done.stderr) == (
        1,
        True,
    )
    (tmp_path / "kit" / "README").write_text("changed")
    done = subprocess.run(["./reproduce.sh"], cwd=tmp_path / "kit", capture_output=True, text=True)
    assert "files of this kit were modified" in done.stderr


def gone(world: World, sha256: str) -> None:
    for file in world.settings.artifacts.rglob(f"{sha256[2:]}*"):
        file.unlink()


def test_what_is_gone_is_named_and_the_rest_can_be_had(world: World, tmp_path: Path) -> None:
    kit = kit_of(world)
    assert kit.missing == ()
    lost = next(
        member.content for member in members(kit) if member.path == "kernels/commit/bzImage"
    )
    gone(world, lost.sha256)  # type: ignore[union-attr]  # an artifact
    rootfs = next(m.content for m in members(kit) if m.path == "rootfs/rootfs.cpio")
    gone(world, rootfs.sha256)  # type: ignore[union-attr]  # an artifact
    kit = kit_of(world)
    assert len(kit.missing) == 2
    assert any(
        line.startswith("bzImage of kernel commit: it was removed from the artifact store (sha256")
        for line in kit.missing
    )
    answer = world.client.get("/report/r1/reproduce.tar.gz")
    assert (answer.status_code, "was removed from the artifact store" in answer.text) == (404, True)
    assert "can no longer be fully reproduced" in world.client.get("/report/r1").text
    world.made.unpack(kit, tmp_path / "kit")
    assert not (tmp_path / "kit" / "kernels" / "commit" / "bzImage").exists()
    assert "- bzImage of kernel commit" in (tmp_path / "kit" / "README").read_text()


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """The file system refuses what is beyond, as a full one does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_is_full_in_the_middle_leaves_nothing_and_says_so(
    world: World, tmp_path: Path
) -> None:
    target = tmp_path / "there" / "r1.tar.gz"
    target.parent.mkdir()
    kit = world.made.kit("r1")
    with (
        files_of_at_most(4096),
        pytest.raises(OSError, match=r"free some disk space, or choose another path.*r1\.tar\.gz"),
    ):
        world.made.write(kit, target)
    with files_of_at_most(4096), pytest.raises(OSError, match="large"):
        world.made.unpack(kit, tmp_path / "there" / "kit")
    assert list(target.parent.iterdir()) == []
    world.made.write(kit, target)
    assert target.stat().st_size > 4096


def test_the_page_says_that_the_disk_is_full_and_gives_it_later(world: World) -> None:
    with files_of_at_most(4096):
        answer = world.client.get("/report/r1/reproduce.tar.gz")
    assert (answer.status_code, "cannot be written just now" in answer.text) == (503, True)
    assert world.client.get("/report/r1/reproduce.tar.gz").status_code == 200


def test_a_file_that_was_changed_in_the_store_is_not_handed_on(
    world: World, tmp_path: Path
) -> None:
    kit = world.made.kit("r1")
    image = next(
        member.content for member in members(kit) if member.path == "kernels/parent/bzImage"
    )
    sha256 = image.sha256  # type: ignore[union-attr]  # an artifact
    gone(world, sha256)
    other = world.put(b"PARENT image")["sha256"]  # of the same length
    folder = world.settings.artifacts
    (folder / other[:2] / f"{other[2:]}.zst").rename(folder / sha256[:2] / f"{sha256[2:]}.zst")
    with pytest.raises(ArtifactError, match=r"kernels/parent/bzImage .* damaged"):
        world.made.write(kit, tmp_path / "r1.tar.gz")
    assert not (tmp_path / "r1.tar.gz").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[",
        b'{"files": 7}',
        b"[" * 100_000,
        b'{"whole": "x", "archive": "../../etc/passwd", "size": 1, "files": []}',
    ],
)
def test_a_worker_that_writes_rubbish_costs_the_kit_its_file_and_no_more(
    world: World, content: bytes
) -> None:
    for name in ("qemu.json", "rootfs.json", "job.cpio"):
        digest = world.put(content)
        world.conn.execute(
            sa.text("UPDATE boot SET files = files || CAST(:new AS jsonb)"),
            {"new": json.dumps({name: digest})},
        )
    world.conn.commit()
    kit = kit_of(world)
    assert kit.missing
    assert not kit.virtual
    assert world.client.get("/report/r1").status_code == 200


def test_names_of_a_job_that_lead_elsewhere_are_left_out(world: World) -> None:
    job = world.put(
        cpio.archive(
            [
                cpio.file("../../etc/passwd", b"x"),
                cpio.file("job/../../x", b"x"),
                cpio.file("job/run.sh", b"y"),
            ]
        )
    )
    world.conn.execute(
        sa.text("UPDATE boot SET files = files || CAST(:new AS jsonb)"),
        {"new": json.dumps({"job.cpio": job})},
    )
    world.conn.commit()
    (payload,) = kit_of(world).payloads
    assert [path for path in payload.programs if not path.startswith(("programs/", "lkp/"))] == [
        "run.sh"
    ]


def test_boots_without_these_files_are_named(world: World) -> None:
    world.conn.execute(sa.text("UPDATE boot SET files = '{}'"))
    world.conn.commit()
    missing = world.made.kit("r1").missing
    assert f"QEMU's arguments of boot x{world.boots[0]}: not stored with it" in missing
    assert any(line.startswith("rootfs.cpio: not stored with the boots") for line in missing)


def test_a_report_without_boots_of_its_culprit_is_one_sentence(world: World) -> None:
    world.conn.execute(sa.text("UPDATE incident SET comparison = NULL"))
    world.conn.commit()
    with pytest.raises(NotFound, match="r1 cannot be reproduced yet: i1 has no boots"):
        world.made.kit("r1")
    assert world.client.get("/report/r1/reproduce.tar.gz").status_code == 404
    assert world.client.get("/report/r99/reproduce.tar.gz").status_code == 404
    assert world.client.get("/report/b1/reproduce.json").status_code == 400


def test_what_becomes_of_a_report_changes_no_byte(world: World, tmp_path: Path) -> None:
    before, after = tmp_path / "before.tar.gz", tmp_path / "after.tar.gz"
    world.made.write(world.made.kit("r1"), before)
    world.conn.execute(sa.text("UPDATE report SET state = 'dropped', sent_at = NULL"))
    world.conn.commit()
    world.made.write(world.made.kit("r1"), after)
    assert before.read_bytes() == after.read_bytes()


def test_tables_of_a_report_are_plain_text_at_addresses_of_their_own(world: World) -> None:
    kernels = ChildKernelRecords(lambda sha256: io.BytesIO())
    app = make_app(
        load(environ={}),
        world.conn.engine,
        read,
        kept_by(lambda sha256: io.BytesIO()),
        tables.routes(
            world.conn.engine,
            functools.partial(shown, kernels=kernels),
            functools.partial(printed, kernels=kernels),
            functools.partial(csv_pieces, kernels=kernels),
            FORMS,
        ),
    )
    with TestClient(app) as client:
        for path in ("/report/r1/mail.txt", "/comparison/c1/lkp.txt", "/incident/i1/changelog.txt"):
            answer = client.get(path)
            assert (answer.status_code, answer.headers["content-type"]) == (
                200,
                "text/plain; charset=utf-8",
            ), answer.text
            assert METRIC in answer.text
        for path, sentence in (
            ("/report/r1/pdf.txt", "Tables are text.txt, mail.txt"),
            ("/report/r1/perf.txt", "no perf stat counters"),
            ("/report/r9/lkp.txt", "report r9 does not exist"),
        ):
            answer = client.get(path)
            assert (answer.status_code, sentence in answer.text) == (404, True), answer.text


def test_a_kit_of_the_command_names_the_port_that_the_service_was_started_with(
    world: World, db_url: str, tmp_path: Path
) -> None:
    state = world.settings.state
    environment = {"SWINGBOT_PATHS_STATE": str(state), "SWINGBOT_DB_URL": db_url}

    def readme(name: str) -> str:
        words = ["reproduce", "r1", "--out", str(tmp_path / name)]
        answer = CliRunner().invoke(main, words, env=environment)
        assert answer.exit_code == 0, answer.output
        return (tmp_path / name / "README").read_text()

    assert "http://127.0.0.1:8010/report/r1" in readme("before")
    address.record(with_place(load(environ=environment), state, 9123))  # as `up --port 9123` does
    text = readme("during")
    assert "http://127.0.0.1:9123/report/r1" in text and ":8010" not in text


def test_the_kit_from_elsewhere_is_that_of_the_host(
    world: World, db_url: str, tmp_path: Path
) -> None:
    def run(words: str, env: dict[str, str]) -> Result:
        return CliRunner().invoke(main, words.split(), env=env)

    with served(db_url, tmp_path, filled=False) as web:
        here = {
            "SWINGBOT_DB_URL": db_url,
            "SWINGBOT_PATHS_STATE": str(web.settings.state),
            "SWINGBOT_WEB_PORT": str(web.port),
        }
        url = f"http://127.0.0.1:{web.port}"
        away = {"SWINGBOT_URL": url, "XDG_CONFIG_HOME": str(tmp_path)}
        out = tmp_path / "out"
        for number, words in enumerate(
            (
                f"reproduce r1 --out {out}/k.tar.gz",
                f"reproduce r1 --out {out}/k --json",
                f"reproduce c1 --out {out}/k --without-kernels",
                f"reproduce r9 --out {out}/k",
                f"reproduce b1 --out {out}/k",
            )
        ):
            printed_here, made_here = run(words, here), _moved(out, tmp_path / f"here{number}")
            printed_away, made_away = run(words, away), _moved(out, tmp_path / f"away{number}")
            assert printed_away.exit_code == printed_here.exit_code, printed_away.output
            assert printed_away.output == printed_here.output
            assert made_away == made_here and bool(made_here) == (number < 3)
        refused = run(f"reproduce r1 --out {out} --incomplete", away)
        assert refused.exit_code == 2 and "own host only" in refused.output


def _moved(out: Path, to: Path) -> dict[str, bytes]:
    """What a command wrote, out of the way of the next."""
    if not out.exists():
        return {}
    out.rename(to)
    return {str(f.relative_to(to)): f.read_bytes() for f in to.rglob("*") if f.is_file()}


@pytest.mark.parametrize("name", ["../x", "/x", "other/x", "kit", "kit/../../x"])
def test_a_kit_with_files_elsewhere_is_not_unpacked(name: str, tmp_path: Path) -> None:
    def write(file: BinaryIO) -> None:
        with tarfile.open(fileobj=file, mode="w:gz") as tar:
            tar.addfile(tarfile.TarInfo("kit/a"))
            tar.addfile(tarfile.TarInfo(name))

    with pytest.raises(OSError, match="is not a file of kit"):
        unpack(write, "kit", tmp_path / "inner" / "out")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize("name", ["/", "..", "", "a/b"])
def test_a_service_names_no_directory_but_one_of_the_kit(name: str, tmp_path: Path) -> None:
    def write(file: BinaryIO) -> None:
        with tarfile.open(fileobj=file, mode="w:gz") as tar:
            tar.addfile(tarfile.TarInfo(str(tmp_path / "written")))

    with pytest.raises(OSError, match="is not the name of a directory|is not a file of"):
        unpack(write, name, tmp_path / "inner" / "out")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_kit_that_grows_too_large_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(file: BinaryIO) -> None:
        with tarfile.open(fileobj=file, mode="w:gz") as tar:
            entry = tarfile.TarInfo("kit/a")
            entry.size = 3 << 20
            tar.addfile(entry, io.BytesIO(bytes(entry.size)))

    monkeypatch.setattr(kit_file, "OUTPUT_BYTES", 2 << 20)
    with pytest.raises(OSError, match="the kit is refused: it has more than"):
        unpack(write, "kit", tmp_path / "out")
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(kit_file, "OUTPUT_BYTES", 4 << 20)
    unpack(write, "kit", tmp_path / "out")
    assert (tmp_path / "out" / "a").stat().st_size == 3 << 20


def _head(name: str, size: int = 0, kind: bytes = tarfile.REGTYPE, mode: int = 0o644) -> bytes:
    entry = tarfile.TarInfo(name)
    entry.size, entry.type, entry.mode = size, kind, mode
    return entry.tobuf(tarfile.USTAR_FORMAT)


def test_a_kit_that_is_no_kit_gets_a_sentence_and_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swingbot.core.limits.RAW_FILE_BYTES", 1 << 20)
    whole = gzip.compress(_head("kit/a") + bytes(1024))
    longs = _head("././@LongLink", 6, tarfile.GNUTYPE_LONGNAME) + b"kit/a\0".ljust(512, b"\0")
    large = _head("././@LongLink", 4 << 20, tarfile.GNUTYPE_LONGNAME) + bytes(4 << 20)
    for odd, sentence in (
        (whole[:30], "ended before the end"),
        (b"<html>", "gzip"),
        (gzip.compress(b"x" * 600), "the kit cannot be read"),
        (gzip.compress(longs * 3000 + _head("kit/a") + bytes(1024)), "recursion"),
        (gzip.compress(large + _head("kit/a") + bytes(1024)), "a head has more than"),
    ):
        with pytest.raises(OSError, match=sentence):
            unpack(lambda file, odd=odd: file.write(odd), "kit", tmp_path / "out")  # type: ignore[misc]
        assert not list(tmp_path.iterdir())


def test_a_kit_gives_nobody_the_rights_of_who_unpacks_it(tmp_path: Path) -> None:
    kit = gzip.compress(_head("kit/a", mode=0o6777) + bytes(1024))
    unpack(lambda file: file.write(kit), "kit", tmp_path / "out")
    assert stat.S_IMODE((tmp_path / "out" / "a").stat().st_mode) == 0o755
