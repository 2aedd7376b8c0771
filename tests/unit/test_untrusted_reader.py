"""What a build leaves is read within limits, by effect: crafted files, real child processes."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from pathlib import Path

import pytest

from swingbot_worker import InfraError
from swingbot_worker.kbuild import build_output, recipe, untrusted_reader
from swingbot_worker.kbuild.elf import NotAnObject, read_elf
from swingbot_worker.kbuild.make import BuildFailed
from swingbot_worker.kbuild.untrusted_reader import BuildReader
from tests.attack.hostile_elf import long_names

MIB = 1 << 20


@pytest.fixture
def objects(tmp_path: Path) -> Path:
    (tmp_path / "x.c").write_text("int shared = 1; int twice(int a) { return 2 * a; }\n")
    subprocess.run(["gcc", "-c", "-o", "x.o", "x.c"], cwd=tmp_path, check=True)
    (tmp_path / "vmlinux").write_bytes((tmp_path / "x.o").read_bytes())
    return tmp_path


def test_the_child_reads_what_this_process_would_read(objects: Path) -> None:
    reader = BuildReader(source=objects, objects=objects)
    assert reader.sizes() == read_elf(objects / "vmlinux").sizes()
    reader.write_record(objects / "record", "gcc 12", remember=True)
    first = (objects / "record").read_bytes()
    rows = json.loads((objects / ".swingbot-functions.json").read_text())["objects"]
    assert list(rows) == ["x.o"]
    reader.remember_objects()
    reader.write_record(objects / "record", "gcc 12", remember=False)
    assert (objects / "record").read_bytes() == first
    assert json.loads((objects / ".swingbot-functions.json").read_text())["objects"] == rows


def test_a_name_shared_by_many_symbols_takes_no_memory(objects: Path) -> None:
    (objects / "vmlinux").write_bytes(long_names(20 * MIB, 120))
    with pytest.raises(NotAnObject, match="a symbol whose name is longer than 4096 bytes"):
        BuildReader(source=objects, objects=objects).sizes()
    with pytest.raises(NotAnObject, match="longer than 4096 bytes"):
        read_elf(objects / "vmlinux")
    (objects / "vmlinux").write_bytes(long_names(4_090, 70_000))
    with pytest.raises(NotAnObject, match="longer than those of a kernel"):
        BuildReader(source=objects, objects=objects).sizes()


def test_what_needs_too_much_memory_is_refused(objects: Path) -> None:
    """Below all limits on the contents: 1 million symbols need more than the 128 MB given here."""
    (objects / "vmlinux").write_bytes(long_names(100, 1_000_000))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(NotAnObject, match="MemoryError|too much memory"):
        BuildReader(source=objects, objects=objects, memory_bytes=128 * MIB).sizes()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10
    assert BuildReader(source=objects, objects=objects).sizes()


def test_what_takes_too_long_is_refused(objects: Path) -> None:
    with pytest.raises(NotAnObject, match="took too long"):
        BuildReader(source=objects, objects=objects, seconds=0.01).sizes()


def test_a_failure_of_the_reader_itself_is_not_the_build_s(
    objects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(untrusted_reader, "_CHILD", "raise SystemExit('no such module')")
    with pytest.raises(InfraError, match="reader of builds failed with status 1"):
        BuildReader(source=objects, objects=objects).sizes()


def test_the_child_can_neither_write_nor_connect(
    objects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root has privileges to drop")
    (objects / "theirs").mkdir()
    os.chown(objects / "theirs", 65_532, 65_532)
    attempt = """
import json, os, socket
said = []
for name, act in (
    ("write", lambda: open({theirs!r} + "/file", "w")),
    ("own", lambda: os.chown({theirs!r}, 0, 0)),
    ("user", lambda: os.setuid(65532)),
    ("connect", lambda: socket.create_connection(("127.0.0.1", 22), 5)),
):
    try:
        act()
        said.append(name)
    except OSError:
        pass
print(json.dumps({{"refused": "did " + " ".join(said)}}))
"""
    theirs = str(objects / "theirs")
    monkeypatch.setattr(untrusted_reader, "_CHILD", attempt.format(theirs=theirs))
    with pytest.raises(NotAnObject, match="^did $"):
        BuildReader(source=objects, objects=objects).sizes()


def test_a_long_config_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / ".config").open("wb") as file:
        file.truncate(24 * MIB)
    with pytest.raises(BuildFailed, match=r"a \.config of 24 MB; the limit is 4 MB"):
        build_output.content(tmp_path, ".config")


def test_lines_of_a_config_that_no_fragment_sets_are_skipped() -> None:
    config = "".join(f"C{number}\n" for number in range(200_000)) + "CONFIG_SMP=y\n"
    fragment = "CONFIG_SMP=y\n# CONFIG_A is not set\nCONFIG_B=m\n"
    assert recipe.lost_lines(fragment, config) == ["CONFIG_B=m"]
