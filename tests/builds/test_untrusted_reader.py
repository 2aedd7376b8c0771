"""What a build leaves is read within limits, by effect: crafted files, real child processes."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from swingbot_jobs.kernel_diff import read_record
from swingbot_worker import InfraError, walls
from swingbot_worker.kbuild import accepted, build_output
from swingbot_worker.kbuild.elf import NotAnObject, read_elf
from swingbot_worker.kbuild.make import BuildFailed
from swingbot_worker.kbuild.untrusted_reader import BuildReader, WantedParts
from swingbot_worker.readers import limited_reader
from swingbot_worker.readers.limited_reader import CannotRead, LimitedReader
from swingbot_worker.walls.argv import USERS
from tests.attack.hostile_elf import long_names

MIB = 1 << 20
SANDBOX = walls.probe().sandbox
SIZES = WantedParts(sizes=True)


@pytest.fixture
def objects() -> Iterator[Path]:
    """A small build, owned as one behind the walls is."""
    with TemporaryDirectory() as place:
        directory = Path(place)
        (directory / "x.c").write_text("int shared = 1; int twice(int a) { return 2 * a; }\n")
        subprocess.run(["gcc", "-c", "-o", "x.o", "x.c"], cwd=directory, check=True)
        (directory / "vmlinux").write_bytes((directory / "x.o").read_bytes())
        directory.chmod(0o755)
        yield directory


def reader(objects: Path, memory_bytes: int = 1_024 * MIB, seconds: float = 60.0) -> BuildReader:
    return BuildReader(
        source=objects,
        objects=objects,
        sandbox=SANDBOX,
        memory_bytes=memory_bytes,
        seconds=seconds,
    )


@pytest.mark.parametrize("sandbox", [SANDBOX, None], ids=["behind walls", "without walls"])
def test_the_child_reads_what_this_process_would_read(
    objects: Path, sandbox: walls.Sandbox | None
) -> None:
    child = BuildReader(source=objects, objects=objects, sandbox=sandbox)
    wanted = WantedParts(
        sizes=True,
        hashes=objects / "hashes",
        record=objects / "record",
        compiler_version="gcc 12",
        remember=True,
    )
    parts = child.read(wanted)
    assert parts.sizes == read_elf(objects / "vmlinux").sizes()
    assert parts.no_record is None
    assert list(json.loads((objects / "hashes").read_text())) == ["x.o"]
    first = (objects / "record").read_bytes()
    assert read_record(first).compiler == "gcc 12"
    rows = json.loads((objects / ".swingbot-functions.json").read_text())["objects"]
    assert list(rows) == ["x.o"]
    assert child.read(wanted) == parts
    assert (objects / "record").read_bytes() == first


def test_a_name_shared_by_many_symbols_takes_no_memory(objects: Path) -> None:
    (objects / "vmlinux").write_bytes(long_names(20 * MIB, 120))
    with pytest.raises(BuildFailed, match="a symbol whose name is longer than 4096 bytes"):
        reader(objects).read(SIZES)
    with pytest.raises(NotAnObject, match="longer than 4096 bytes"):
        read_elf(objects / "vmlinux")
    (objects / "vmlinux").write_bytes(long_names(4_090, 70_000))
    with pytest.raises(BuildFailed, match="longer than those of a kernel"):
        reader(objects).read(SIZES)


def test_what_needs_too_much_memory_is_infrastructure(objects: Path) -> None:
    """Below all limits on the contents: 300 000 symbols need more than the 64 MB given here."""
    (objects / "vmlinux").write_bytes(long_names(100, 300_000))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InfraError, match="too much memory"):
        reader(objects, memory_bytes=64 * MIB).read(SIZES)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10
    assert reader(objects).read(SIZES).sizes


def test_what_takes_too_long_is_infrastructure(objects: Path) -> None:
    with pytest.raises(InfraError, match="took too long"):
        reader(objects, seconds=0.01).read(SIZES)


def test_a_kernel_whose_objects_cannot_be_read_has_no_record_but_is_kept(objects: Path) -> None:
    (objects / "x.o").write_bytes(long_names(20 * MIB, 120))
    record = objects / "record"
    parts = reader(objects).read(
        WantedParts(sizes=True, record=record, compiler_version="gcc 12", remember=True)
    )
    assert parts.sizes == read_elf(objects / "vmlinux").sizes()
    assert parts.no_record is not None and "longer than 4096 bytes" in parts.no_record
    assert not record.exists() and not (objects / ".swingbot-functions.json").exists()


def test_a_failure_of_the_reader_itself_is_not_the_build_s(
    objects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limited_reader, "_START", "raise SystemExit('no such module')")
    with pytest.raises(InfraError, match="failed with status 1: 'no such module'"):
        reader(objects).read(SIZES)


ATTEMPTS = """
import json, os, socket, sys
answer = json.load(sys.stdin)["answer"]
said = []
for name, act in (
    ("write", lambda: open({theirs!r} + "/file", "w")),
    ("own", lambda: os.chown({theirs!r}, 0, 0)),
    ("user", lambda: os.setuid(65531)),
    ("connect", lambda: socket.create_connection(("127.0.0.1", {port}), 5)),
    ("see", lambda: open({outside!r})),
    ("signal", lambda: os.kill({pid}, 0)),
    ("home", lambda: open({home!r})),
    ("checkout", lambda: open({checkout!r})),
):
    try:
        act()
        said.append(name)
    except OSError:
        pass
os.write(answer, json.dumps({{"refused": "did " + " ".join(said)}}).encode())
"""


@pytest.mark.parametrize("sandbox", [SANDBOX, None], ids=["behind walls", "without walls"])
def test_the_child_can_neither_write_nor_connect_nor_see_the_host(
    objects: Path,
    tmp_path: Path,
    host_files: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    sandbox: walls.Sandbox | None,
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root has privileges to drop")
    (objects / "theirs").mkdir()
    os.chown(objects / "theirs", USERS["untrusted"], USERS["untrusted"])
    outside = tmp_path / "secret"
    outside.touch()
    home, checkout = host_files
    attempts = ATTEMPTS.format(
        theirs=str(objects / "theirs"),
        outside=str(outside),
        home=str(home),
        checkout=str(checkout),
        port=22,
        pid=os.getpid(),
    )
    monkeypatch.setattr(limited_reader, "_START", attempts.replace("{", "{{").replace("}", "}}"))
    child = LimitedReader(
        module="", sandbox=sandbox, memory_bytes=MIB, seconds=60, cpu_seconds=9, visible=(objects,)
    )
    # without walls it can still read the host's files
    seen = "did" if sandbox else "did see signal home checkout"
    with pytest.raises(CannotRead, match=f"^{seen} *$"):
        child.answer({})


def test_a_config_is_checked_in_the_child(objects: Path) -> None:
    (objects / ".config").write_text("CONFIG_SMP=y\n# CONFIG_A is not set\n")
    with (objects / ".config").open("rb") as config:
        lost = reader(objects).lost_lines(["CONFIG_SMP=y\nCONFIG_B=m\n", "CONFIG_A=y\n"], config)
    assert lost == [["CONFIG_B=m"], ["CONFIG_A=y"]]
    (objects / ".config").write_bytes(b"\xff")
    with (
        (objects / ".config").open("rb") as config,
        pytest.raises(BuildFailed, match="not valid UTF-8"),
    ):
        reader(objects).lost_lines([], config)


def test_a_linker_script_that_takes_too_much_memory_is_refused(objects: Path) -> None:
    script = objects / "vmlinux.lds"
    script.write_text(".text : { *(.text) }\n")
    wanted = WantedParts(hashes=objects / "hashes", script=objects / "moved", layout=1)
    with script.open("rb") as file:
        assert reader(objects).read(wanted, script=file).no_layout is None
    assert "[x].o(.text" in (objects / "moved").read_text()
    with script.open("wb") as file:
        file.truncate(256 * MIB)
    with script.open("rb") as file, pytest.raises(InfraError, match="too much memory"):
        reader(objects, memory_bytes=128 * MIB).read(wanted, script=file)


def test_a_long_config_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / ".config").open("wb") as file:
        file.truncate(24 * MIB)
    with pytest.raises(InfraError, match=r"a \.config of 24 MB; the limit is 4 MB"):
        build_output.content(tmp_path, ".config")


def test_lines_of_a_config_that_no_fragment_sets_are_skipped() -> None:
    config = "".join(f"C{number}\n" for number in range(200_000)) + "CONFIG_SMP=y\n"
    fragment = "CONFIG_SMP=y\n# CONFIG_A is not set\nCONFIG_B=m\n"
    assert accepted.lost_lines(fragment, config) == ["CONFIG_B=m"]
