"""The kit of an experiment or comparison, from rows, artifacts and a mirror to bytes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import sqlalchemy as sa
from starlette.types import Message

from swingbot.adapters import limits as adapter_limits
from swingbot.app.reproduction import Reproductions
from swingbot.core.model.ids import BadId
from swingbot.core.model.lookup import NotFound
from swingbot.core.reproduce import Kit, members
from swingbot.service import limits
from swingbot.web.pages.reproduction import ClientLeft
from swingbot_worker.rootfs import contents, cpio
from tests import builders as make
from tests.git_shim import git_shim
from tests.kits import KitService, kit_service, unpacked
from tests.tables import JOBS, METRICS, an_experiment

NAMES = ("v6.1", "batch<<2", "$(touch hacked) '../x'", "gcc head")
QEMU = ["qemu-system-x86_64", "-kernel", "bzImage", "-initrd", "initrd"]


class World(KitService):
    def kit(self, id: str, **more: Any) -> Kit:
        return self.made.kit(id, **more)

    def execute(self, text: str, **values: Any) -> None:
        self.conn.execute(sa.text(text), values)
        self.conn.commit()


@pytest.fixture
def world(db_url: str, tmp_path: Path) -> Iterator[World]:
    with kit_service(db_url, tmp_path / "state") as service:
        yield World(**vars(service))


def an_experiment_with_files(world: World, **more: Any) -> None:
    """Experiment e1: the third of four kernels does not build; vm-icount keeps what a guest has."""
    wanted: dict[str, Any] = {"kernels": 4, "testboxes": 2, "boots": 2, "names": NAMES}
    wanted |= {"unbuildable": (2,)} | more
    made = an_experiment(world.conn, **wanted)
    for number, kernel in enumerate(made.kernels):
        files = {"config": world.put(b"CONFIG_MMU=y\n")}
        if number not in wanted["unbuildable"]:
            files["bzImage"] = world.put(f"image {number}".encode())
        world.execute(
            "UPDATE kernel_build SET files = :files WHERE build_key = :key",
            files=json.dumps(files),
            key=kernel.build_key,
        )
    keep_files(world, a_job(world, b"#!/bin/sh\n"))


def a_job(world: World, script: bytes) -> dict[str, Any]:
    return world.put(cpio.archive([cpio.file("job/run.sh", script)]))


def keep_files(world: World, job: dict[str, Any]) -> None:
    archive = cpio.archive([cpio.file("bin/busybox", b"b" * 77)])
    record, handed_on = contents.record(archive, [], {}, Path("/nowhere"))
    world.put(handed_on)
    files = {
        "qemu.json": world.put(json.dumps(QEMU).encode()),
        "job.cpio": job,
        "rootfs.json": world.put(json.dumps(record).encode()),
    }
    world.execute(
        "UPDATE boot SET files = :files, facts = :facts WHERE testbox = 'vm-icount'",
        files=json.dumps(files),
        facts=json.dumps({"qemu_version": "QEMU emulator version 7.2.22"}),
    )


def test_an_experiment_with_a_failed_row_and_two_testboxes_is_one_whole_kit(
    world: World, tmp_path: Path
) -> None:
    an_experiment_with_files(world)
    answer = world.client.get("/experiment/e1/reproduce.tar.gz")
    assert answer.status_code == 200, answer.text
    directory = unpacked(answer.content, tmp_path / "kit")
    assert directory.name == "swingbot-e1"
    done = subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=directory)
    assert done.returncode == 0
    listed = world.client.get("/experiment/e1/reproduce.json").json()
    there = {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}
    assert there == {file["path"] for file in listed["files"]}
    assert (listed["experiment"], listed["missing"]) == ("e1", [])
    kernels = [line.split("\t") for line in (directory / "kernels.tsv").read_text().splitlines()]
    assert [(row[0], row[1]) for row in kernels] == [
        ("v6.1", "v6.1"),
        ("batch-2", "batch<<2"),
        ("touch-hacked-.-x", "$(touch hacked) '../x'"),
        ("gcc-head", "gcc head"),
    ]
    assert not (directory / "kernels" / "touch-hacked-.-x" / "bzImage").exists()
    text = " ".join((directory / "README").read_text().split())
    assert "no boots: it does not build: mm/page_alloc.c:12:1: error" in text
    assert "It also ran on lkp-box-1." in text
    boots = [line.split("\t") for line in (directory / "boots.tsv").read_text().splitlines()]
    assert sorted((row[1], row[2]) for row in boots) == [
        (name, k) for name in ("batch-2", "gcc-head", "v6.1") for k in ("0", "1")
    ]
    assert [row[2] for row in boots] == ["0", "0", "0", "1", "1", "1"], "block by block"
    levels = [line.split("\t") for line in (directory / "levels.tsv").read_text().splitlines()]
    assert [row[4] for row in levels] == ["v6.1", "batch-2", "touch-hacked-.-x", "gcc-head"]
    assert levels[0][:2] == [JOBS[0], METRICS[0]]
    facts = world.client.get("/experiment/e1.json").json()
    reported = {
        row["arm"]: row
        for row in facts["rows"]
        if (row["testbox"], row["metric"]) == ("vm-icount", METRICS[0])
    }
    assert float(levels[1][6]) == reported[1]["head"]["mean"]
    assert float(levels[1][8]) == reported[1]["change_pct"]


def test_the_order_within_a_block_stays_when_the_first_block_is_lost(world: World) -> None:
    an_experiment_with_files(world, unbuildable=())
    whole = [(boot.k, boot.kernel) for boot in world.kit("e1").boots]
    world.execute("UPDATE boot SET outcome = 'hung' WHERE testbox = 'vm-icount' AND k = 0")
    rest = [(boot.k, boot.kernel) for boot in world.kit("e1").boots]
    assert rest == [(k, kernel) for k, kernel in whole if k == 1]


def test_another_testbox_is_chosen_by_its_name(world: World) -> None:
    an_experiment_with_files(world)
    kit = world.kit("e1", testbox="lkp-box-1")
    assert (kit.testbox, kit.directory, kit.virtual) == (
        "lkp-box-1",
        "swingbot-e1-lkp-box-1",
        False,
    )
    assert any(line.startswith("job.cpio") for line in kit.missing)
    assert world.kit("e1", testbox="vm-icount").directory == "swingbot-e1"
    answer = world.client.get("/experiment/e1/reproduce.tar.gz?testbox=lkp-box-1")
    assert answer.status_code == 404
    assert "e1 can no longer be fully reproduced: job.cpio: not stored with the" in answer.text
    with pytest.raises(NotFound, match="e1 did not run on 'toaster'; it ran on lkp-box-1, vm-icou"):
        world.kit("e1", testbox="toaster")


def test_all_unit_jobs_of_a_testbox_belong(world: World) -> None:
    an_experiment_with_files(world, metrics=2)
    kit = world.kit("e1")
    assert [headline.unit_job for headline in kit.headlines] == sorted(JOBS)
    assert {run.unit_job for boot in kit.boots for run in boot.runs} == set(JOBS)


def test_each_job_that_differs_is_kept(world: World) -> None:
    an_experiment_with_files(world)
    other = {"job.cpio": a_job(world, b"#!/bin/sh\n# sysctl\n")}
    world.execute(
        "UPDATE boot SET files = files || CAST(:new AS jsonb)"
        " WHERE testbox = 'vm-icount' AND image_sha256 ="
        " (SELECT image_sha256 FROM kernel_build JOIN variant USING (build_key)"
        "  JOIN comparison_arm ON variant = variant.id WHERE arm = 3)",
        new=json.dumps(other),
    )
    kit = world.kit("e1")
    assert {(boot.kernel, boot.payload) for boot in kit.boots} in (
        {("v6.1", 1), ("batch-2", 1), ("gcc-head", 2)},
        {("v6.1", 2), ("batch-2", 2), ("gcc-head", 1)},
    )
    assert [payload.rootfs_number for payload in kit.payloads] == [1, 1]
    assert kit.missing == ()


def test_boots_that_are_shared_by_equal_images_count_for_each_and_are_stored_once(
    world: World, tmp_path: Path
) -> None:
    an_experiment_with_files(world, unbuildable=())
    same = (
        " (SELECT build_key FROM variant JOIN comparison_arm ON variant = variant.id WHERE arm = "
    )
    world.execute(
        f"UPDATE kernel_build SET (image_sha256, files) = (SELECT image_sha256, files FROM"
        f" kernel_build WHERE build_key = {same}0)) WHERE build_key = {same}3)"
    )
    kit = world.kit("e1")
    of = {
        name: [boot.id for boot in kit.boots if boot.kernel == name]
        for name in ("v6.1", "gcc-head")
    }
    assert of["v6.1"] == of["gcc-head"] and len(of["v6.1"]) == 2
    world.made.write(kit, tmp_path / "kit.tar.gz")
    with tarfile.open(tmp_path / "kit.tar.gz") as tar:
        links = {info.name: info.linkname for info in tar.getmembers() if info.islnk()}
    assert links["swingbot-e1/kernels/v6.1/bzImage"] == "swingbot-e1/kernels/gcc-head/bzImage"
    world.made.unpack(kit, tmp_path / "kit")
    kernels = tmp_path / "kit" / "kernels"
    assert (kernels / "v6.1" / "bzImage").samefile(kernels / "gcc-head" / "bzImage")


def test_the_same_experiment_makes_the_same_bytes(world: World, tmp_path: Path) -> None:
    an_experiment_with_files(world)
    one, other = tmp_path / "one.tar.gz", tmp_path / "other.tar.gz"
    world.made.write(world.kit("e1"), one)
    world.execute("UPDATE testbox SET state = 'quarantined'")
    world.made.write(world.kit("e1"), other)
    assert one.read_bytes() == other.read_bytes()


def test_large_images_are_left_to_build_sh(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    an_experiment_with_files(world)
    paths = {member.path for member in members(world.kit("e1", kernels=False))}
    assert "kernels/v6.1/config" in paths and "kernels/v6.1/bzImage" not in paths
    monkeypatch.setattr(limits, "KIT_IMAGE_BYTES", 20)
    kit = world.kit("e1")
    assert {member.path for member in members(kit)} == paths
    assert kit.notes == ("the kernel images were left out; build.sh builds them",)


def git(place: Path, *words: str) -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    done = subprocess.run(
        ["git", "-C", place, *who, *words], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def a_table_of_changes(world: World, place: Path) -> list[str]:
    """Experiment e1 of the first, second and fourth of the commits that are returned.

    The commit of its fourth kernel is not in the mirror.
    """
    an_experiment_with_files(world, unbuildable=())
    repo = place / "repo"
    repo.mkdir()
    git(repo, "init", "--quiet")
    commits = []
    for number in range(4):
        (repo / "file").write_text(f"{number}\n")
        git(repo, "add", "file")
        git(repo, "commit", "--quiet", "-m", f"change {number}\n\n$(touch hacked)")
        commits.append(git(repo, "rev-parse", "HEAD"))
    subprocess.run(["git", "clone", "--quiet", "--bare", repo, world.settings.mirror], check=True)
    for arm, commit in ((0, commits[0]), (1, commits[1]), (2, commits[3])):
        world.execute(
            "UPDATE variant SET commit = :commit"
            " FROM comparison_arm a WHERE a.variant = variant.id AND a.arm = :arm",
            commit=commit,
            arm=arm,
        )
    return commits


def test_patches_are_those_between_the_kernels_of_the_table(world: World, tmp_path: Path) -> None:
    commits = a_table_of_changes(world, tmp_path)
    kit = world.kit("e1")
    assert [len(row.patches) for row in kit.rows] == [0, 1, 2, 0]
    assert [row.start for row in kit.rows[:3]] == [commits[0]] * 3
    assert kit.rows[2].series == [
        "kernels/batch-2/0001.patch",
        "kernels/touch-hacked-.-x/0001.patch",
        "kernels/touch-hacked-.-x/0002.patch",
    ]
    assert b"\n-2\n+3\n" in kit.rows[2].patches[1]
    assert kit.rows[3].no_patches == "the mirror no longer has its commit"


def test_all_patches_of_a_kit_have_a_time_and_those_that_are_late_stay_so(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = a_table_of_changes(world, tmp_path)
    notes = a_noted_git(tmp_path, monkeypatch)
    with monkeypatch.context() as short:  # the first is begun, and uses all of it
        short.setattr(limits, "KIT_PATCH_SECONDS", 1e-9)
        first = world.client.get("/experiment/e1/reproduce.tar.gz")
    assert first.status_code == 200, first.text
    assert notes.read_text().count("format-patch") == 1
    directory = unpacked(first.content, tmp_path / "kit")
    assert [path.parent.name for path in directory.rglob("*.patch")] == ["batch-2"]
    reason = f"of commit {commits[2][:12]}, the patches of this kit take too long together"
    assert reason in " ".join((directory / "README").read_text().split())
    second = world.client.get("/experiment/e1/reproduce.tar.gz")
    assert second.content == first.content
    assert notes.read_text().count("format-patch") == 1


def a_table_of_copies(world: World, place: Path) -> None:
    """Experiment e1 of two kernels, the second of which copies a file of 3 MB 8 times."""
    an_experiment_with_files(world, kernels=2, unbuildable=())
    repo = place / "repo"
    repo.mkdir()
    git(repo, "init", "--quiet")
    large = "".join(f"{number:019d}\n" for number in range(150_000))
    for arm, names in enumerate((["a"], [f"b{number}" for number in range(8)])):
        for name in names:
            (repo / name).write_text(f"{name}\n{large}")
        git(repo, "add", ".")
        git(repo, "commit", "--quiet", "-m", "copy")
        world.execute(
            "UPDATE variant SET commit = :commit"
            " FROM comparison_arm a WHERE a.variant = variant.id AND a.arm = :arm",
            commit=git(repo, "rev-parse", "HEAD"),
            arm=arm,
        )
    subprocess.run(["git", "clone", "--quiet", "--bare", repo, world.settings.mirror], check=True)


def a_noted_git(place: Path, monkeypatch: pytest.MonkeyPatch, script: str = "") -> Path:
    """Let git note its arguments in the file that is returned, then run `script`."""
    notes = place / "notes"
    git_shim(place, monkeypatch, f"echo \"$*\" >>'{notes}'\n{script}")
    return notes


@pytest.mark.parametrize(
    ("counted", "reason"),
    [
        (16 << 20, "the files that it changes, copies or renames have 22 MiB together"),
        (512 << 20, "git format-patch: it writes more than 16 MiB"),
    ],
)
def test_a_patch_that_is_too_large_costs_once_and_is_named(
    world: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    counted: int,
    reason: str,
) -> None:
    a_table_of_copies(world, tmp_path)
    monkeypatch.setattr(adapter_limits, "TOUCHED_BYTES", counted)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    notes = a_noted_git(tmp_path, monkeypatch)
    first = world.client.get("/experiment/e1/reproduce.tar.gz")
    assert first.status_code == 200, first.text
    readme = (unpacked(first.content, tmp_path / "kit") / "README").read_text()
    assert reason in " ".join(readme.split())
    assert ("format-patch" in notes.read_text()) == (counted > 16 << 20)
    notes.write_text("")
    second = world.client.get("/experiment/e1/reproduce.tar.gz")
    assert (second.content, notes.read_text()) == (first.content, "")


def test_a_kit_that_takes_long_keeps_no_other_waiting_and_is_written_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    an_experiment_with_files(world)
    dear, begun, gone, go = world.kit("e1"), threading.Event(), threading.Event(), threading.Event()
    other = replace(dear, id="e2")
    write, written = Reproductions.write, list[str]()

    def slow(made: Reproductions, kit: Kit, target: Path) -> int:
        written.append(kit.id)
        if kit.id == "e1":
            begun.set()
            assert go.wait(600)
        return write(made, kit, target)

    def leaves() -> None:
        with world.made.wanted(gone.is_set):
            world.made.kept(dear)

    monkeypatch.setattr(Reproductions, "write", slow)
    with ThreadPoolExecutor(3) as threads:
        try:
            twice = [threads.submit(world.made.kept, dear) for _ in range(2)]
            assert begun.wait(600)  # so that the one who leaves waits for it
            left = threads.submit(leaves)
            assert world.made.kept(other).is_file()
            gone.set()
            with pytest.raises(ClientLeft):
                left.result(600)
            assert not any(kit.done() for kit in twice)
        finally:
            go.set()
        assert twice[0].result().read_bytes() == twice[1].result().read_bytes()
    assert sorted(written) == ["e1", "e2"]


def test_git_stops_when_the_client_has_left(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_table_of_copies(world, tmp_path)
    pid = tmp_path / "pid"
    told = f"echo $$ >'{pid}.new'; mv '{pid}.new' '{pid}'"
    a_noted_git(
        tmp_path, monkeypatch, f'case "$*" in *format-patch*) {told}; exec sleep 600;; esac'
    )
    address = "/experiment/e1/reproduce.tar.gz"
    scope = {
        "type": "http",
        "method": "GET",
        "path": address,
        "raw_path": address.encode(),
        "query_string": b"",
        "headers": [(b"host", b"testserver")],
        "http_version": "1.1",
        "scheme": "http",
        "server": ("testserver", 80),
        "client": ("127.0.0.1", 1),
    }
    sent: list[Message] = []

    requests: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Message:
        if requests:
            return requests.pop()
        while not pid.exists() and not sent:
            await asyncio.sleep(0.05)
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(world.client.app(scope, receive, send))  # type: ignore[arg-type]
    assert sent[0]["status"] == 503
    assert not psutil.pid_exists(int(pid.read_text()))
    assert not list((world.settings.state / "reproductions").glob("*"))


def test_a_comparison_has_a_kit_of_base_and_head(world: World, tmp_path: Path) -> None:
    tree, testbox = make.a_tree(world.conn), make.a_testbox(world.conn)
    base, head = make.a_kernel(world.conn, tree, 1), make.a_kernel(world.conn, tree, 2)
    comparison = make.a_comparison(world.conn, tree, base, head, [testbox], boots=2)
    for k in range(2):
        for kernel, level in ((base, 1000.0), (head, 900.0)):
            values = {make.METRIC: [level + k, level + k]}
            make.a_boot(world.conn, testbox, kernel, k=k, values=values, comparison=comparison)
    make.a_row(world.conn, comparison, testbox, base=(1000.0, 1001.0), head=(900.0, 901.0))
    for kernel in (base, head):
        files = {"bzImage": world.put(kernel.image.encode()), "config": world.put(b"CONFIG\n")}
        world.execute(
            "UPDATE kernel_build SET files = :files WHERE build_key = :key",
            files=json.dumps(files),
            key=kernel.build_key,
        )
    keep_files(world, a_job(world, b"#!/bin/sh\n"))
    answer = world.client.get("/comparison/c1/reproduce.tar.gz")
    assert answer.status_code == 200, answer.text
    directory = unpacked(answer.content, tmp_path / "kit")
    boots = [line.split("\t") for line in (directory / "boots.tsv").read_text().splitlines()]
    assert [(row[1], row[2]) for row in boots] == [
        ("base", "0"),
        ("head", "0"),
        ("head", "1"),
        ("base", "1"),
    ]
    assert "head" in (directory / "levels.tsv").read_text()
    assert json.loads((directory / "comparison.json").read_text())["rows"][0]["against"] == (
        "the first row"
    )
    assert "/comparison/c1/reproduce.tar.gz" in world.client.get("/comparison/c1").text
    assert world.client.get("/experiment/c1/reproduce.tar.gz").status_code == 400


def test_the_page_of_an_experiment_leads_to_its_kit_once_it_is_over(world: World) -> None:
    an_experiment_with_files(world)
    assert "/experiment/e1/reproduce.tar.gz" in world.client.get("/experiment/e1").text
    world.execute("UPDATE comparison SET status = 'running', ended_at = NULL")
    assert "reproduce.tar.gz" not in world.client.get("/experiment/e1").text
    with pytest.raises(NotFound, match="e1 cannot be reproduced yet: it is running; `swingbot wai"):
        world.kit("e1")
    with pytest.raises(BadId, match="'b1' is the id of a bisection; give the id of a report"):
        world.made.kit("b1")


def test_an_experiment_none_of_whose_kernels_booted_is_named_not_an_error(world: World) -> None:
    an_experiment_with_files(world)
    world.execute("DELETE FROM sample")
    world.execute("DELETE FROM run")
    world.execute("UPDATE boot SET outcome = 'panicked', reason = 'Kernel panic: ``x''`'")
    kit = world.kit("e1")
    assert kit.missing == ("boots: none came up on lkp-box-1",)
    assert kit.rows[0].trouble.startswith("none of 2 boots came up (panicked, Kernel panic")
    assert world.client.get("/experiment/e1/reproduce.tar.gz").status_code == 404
