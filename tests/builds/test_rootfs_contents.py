"""What a root file system's record says, and the copy of it that may be handed on."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from swingbot_jobs.reading import newc
from swingbot_worker.rootfs import contents, cpio
from swingbot_worker.rootfs.programs import Binary

ENTRIES = [
    cpio.directory("usr"),
    cpio.file("usr/a", b"12345", executable=True),
    cpio.link("usr/l", "a"),
    cpio.file("usr/z", b""),
    cpio.file("zz", b"x" * 999),
]


def test_members_are_where_they_are_said_to_be() -> None:
    archive = cpio.archive(ENTRIES)
    found = {
        member.path: archive[member.offset : member.offset + member.size]
        for member in newc.members(archive)
    }
    assert found == {"usr/a": b"12345", "usr/z": b"", "zz": b"x" * 999}


def test_what_is_no_archive_or_half_of_one_is_refused() -> None:
    archive = cpio.archive(ENTRIES)
    for broken in (b"", b"x" * 200, archive[:130], archive[:-300]):
        with pytest.raises(newc.NotAnArchive):
            list(newc.members(broken))


def test_what_may_not_be_handed_on_is_zeros_of_the_same_length_and_fits_back(
    tmp_path: Path,
) -> None:
    archive = cpio.archive(ENTRIES)
    own = tmp_path / "debian" / "netperf" / "a"
    record, handed_on = contents.record(
        archive, [Binary(own, "usr/a", "netperf_1")], {"usr/a": own}, tmp_path / "debian"
    )
    (left_out,) = [file for file in record["files"] if "left_out" in file]
    assert (left_out["path"], left_out["package"], left_out["sha256"]) == (
        "usr/a",
        "netperf_1",
        hashlib.sha256(b"12345").hexdigest(),
    )
    offset = left_out["left_out"]["offset"]
    assert handed_on[offset : offset + 5] == bytes(5)
    whole = handed_on[:offset] + b"12345" + handed_on[offset + 5 :]
    assert hashlib.sha256(whole).hexdigest() == record["whole"]
    assert hashlib.sha256(handed_on).hexdigest() == record["archive"]


def test_with_nothing_to_leave_out_both_are_one() -> None:
    archive = cpio.archive(ENTRIES)
    record, handed_on = contents.record(archive, [], {}, Path("/nowhere"))
    assert (handed_on, record["archive"]) == (archive, record["whole"])


def test_a_library_is_known_by_its_debian_package() -> None:
    libc = Path("/usr/lib/x86_64-linux-gnu/libc.so.6")
    record, _ = contents.record(
        cpio.archive([cpio.file("usr/lib/libc.so.6", libc.read_bytes())]),
        [],
        {"usr/lib/libc.so.6": libc},
        Path("/nowhere"),
    )
    version = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Version}", "libc6"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert record["files"][0]["package"] == f"libc6 {version}"
