"""Taking a program's source in: an archive or a directory, and every way in which one can be
hostile."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import random
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swingbot_worker import limits
from swingbot_worker.program import source
from swingbot_worker.program.source import BadSource, take_in
from tests.amount import examples

COMMIT = "75f66e4" + "0" * 33
Member = tuple[tarfile.TarInfo, bytes]


def member(
    name: str, content: bytes = b"x", kind: bytes = tarfile.REGTYPE, **more: object
) -> Member:
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, len(content)
    for key, value in more.items():
        setattr(info, key, value)
    return info, content


def tar(*members: Member, comment: str = "") -> bytes:
    out = io.BytesIO()
    headers = {"comment": comment} if comment else None
    with tarfile.open(
        fileobj=out, mode="w", format=tarfile.PAX_FORMAT, pax_headers=headers
    ) as made:
        for info, content in members:
            made.addfile(info, io.BytesIO(content))
    return out.getvalue()


SMALL = (member("p-1/Makefile", b"all:\n"), member("p-1/tests/a.c"), member("p-1/go", mode=0o755))


def taken(tmp_path: Path, archive: bytes) -> source.ProgramSource:
    (tmp_path / "archive").write_bytes(archive)
    (tmp_path / "in").mkdir()
    return take_in(tmp_path / "archive", tmp_path / "in")


@pytest.mark.parametrize(
    "packed", [bytes, gzip.compress, bz2.compress, lzma.compress], ids=["plain", "gz", "bz2", "xz"]
)
def test_an_archive_is_unpacked_below_its_own_directory(
    tmp_path: Path, packed: Callable[[bytes], bytes]
) -> None:
    found = taken(tmp_path, packed(tar(*SMALL, comment=COMMIT)))
    files = {path.relative_to(found.root).as_posix() for path in found.root.rglob("*.*")}
    assert (files, found.commit, found.left_out) == ({"tests/a.c"}, COMMIT, 0)
    assert (found.root / "Makefile").read_bytes() == b"all:\n"
    assert os.access(found.root / "go", os.X_OK)
    assert not os.access(found.root / "Makefile", os.X_OK)


def test_a_checkout_and_its_archive_have_one_digest_and_commit(tmp_path: Path) -> None:
    from_archive = taken(tmp_path, tar(*SMALL, comment=COMMIT))
    git = tmp_path / "checkout" / ".git"
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "refs" / "heads" / "main").write_text(f"{COMMIT}\n")
    for path in from_archive.root.rglob("*"):
        if path.is_file():
            copy = git.parent / path.relative_to(from_archive.root)
            copy.parent.mkdir(exist_ok=True)
            copy.write_bytes(path.read_bytes())
            copy.chmod(path.stat().st_mode)
    found = take_in(git.parent, tmp_path / "copy")
    assert (found.sha256, found.commit) == (from_archive.sha256, COMMIT)
    assert not (found.root / ".git").exists()


def test_the_commit_of_packed_refs_is_found_and_a_hostile_ref_is_no_commit(tmp_path: Path) -> None:
    git = tmp_path / "checkout" / ".git"
    git.mkdir(parents=True)
    (git.parent / "a.c").write_text("x")
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "packed-refs").write_text(f"# pack-refs\n{COMMIT} refs/heads/main\n")
    assert take_in(git.parent, tmp_path / "one").commit == COMMIT
    (tmp_path / "secret").write_text(COMMIT)
    (git / "HEAD").write_text("ref: ../../secret\n")
    assert take_in(git.parent, tmp_path / "two").commit is None


def test_binaries_and_objects_that_come_along_are_left_out(tmp_path: Path) -> None:
    elf, archive = b"\x7fELF\x02\x01", b"!<arch>\n"
    found = taken(tmp_path, tar(*SMALL, member("p-1/a.o", elf), member("p-1/b.a", archive)))
    assert found.left_out == 2
    assert not list(found.root.rglob("*.[oa]"))


DEEP = "/".join(["d"] * 17)
BIG = limits.PROGRAM_FILE_BYTES
# Made when asked for: some are large.
HOSTILE: dict[str, tuple[Callable[[], bytes], str | None]] = {
    "above": (lambda: tar(member("../x")), "leads outside"),
    "above, later": (lambda: tar(member("p/../../x")), "leads outside"),
    "absolute": (lambda: tar(member("/tmp/x")), "leads outside"),
    "directory above": (lambda: tar(member("../d", b"", tarfile.DIRTYPE)), "leads outside"),
    "symlink": (
        lambda: tar(member("p/l", b"", tarfile.SYMTYPE, linkname="/etc")),
        "a link to '/etc'",
    ),
    "hard link": (
        lambda: tar(*SMALL, member("p/l", b"", tarfile.LNKTYPE, linkname="x")),
        "a link to 'x'",
    ),
    "device": (lambda: tar(member("p/d", b"", tarfile.BLKTYPE)), "a device or pipe"),
    "pipe": (lambda: tar(member("p/f", b"", tarfile.FIFOTYPE)), "a device or pipe"),
    "deep": (lambda: tar(member(f"{DEEP}/x")), "16 directories deep"),
    "control characters": (lambda: tar(member("p/a\nb")), "not a valid name of a source file"),
    "long name": (lambda: tar(member("p/" + "n" * 250)), "not a valid name of a source file"),
    "twice": (lambda: tar(member("p/a"), member("p/a")), "occurs twice"),
    "file as directory": (lambda: tar(member("p/a"), member("p/a/b")), "a file and as a directory"),
    "large file": (lambda: tar(member("p/a", bytes(BIG + 1))), "the limit for a source file is"),
    "large altogether": (
        lambda: gzip.compress(tar(*[member(f"p/{n}", bytes(BIG)) for n in range(5)]), 1),
        "unpacks to more than 64 MiB",
    ),
    "bomb behind the end": (lambda: gzip.compress(tar(*SMALL) + bytes(140 << 20), 1), None),
    "bomb in a header": (
        lambda: gzip.compress(tar(member("p/a", pax_headers={"k": "v" * (120 << 20)})), 1),
        "unpacks to more than 64 MiB",
    ),
    "many files": (
        lambda: tar(*[member(f"p/{n}", b"") for n in range(201)]),
        "more than 200 files",
    ),
    "cut": (lambda: tar(member("p/a", bytes(9000)))[:3000], "cut off|cannot be read"),
    "cut, compressed": (lambda: gzip.compress(tar(*SMALL))[:-20], "cannot be read as an archive"),
    "zip": (lambda: b"PK\x03\x04" + bytes(600), "not a tar archive"),
    "empty": (lambda: b"", "not a tar archive"),
    "no files": (lambda: tar(member("p", b"", tarfile.DIRTYPE)), "contains no files"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused_and_writes_nothing_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(limits, "PROGRAM_FILES", 200)
    make, why = HOSTILE[name]
    archive = make()
    before = {path.name for path in tmp_path.parent.iterdir()}
    if why is None:  # what follows the end of an archive is not read
        assert taken(tmp_path, archive).commit is None
    else:
        with pytest.raises(BadSource, match=why):
            taken(tmp_path, archive)
    assert {path.name for path in tmp_path.parent.iterdir()} == before
    assert {path.name for path in tmp_path.iterdir()} == {"archive", "in"}
    odd = [path for path in (tmp_path / "in").rglob("*") if path.is_symlink()]
    assert odd == []


def test_a_sparse_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "hole").touch()
    os.truncate(tmp_path / "hole", 1 << 30)
    packed = tmp_path / "sparse.tar"
    subprocess.run(
        ["tar", "-C", tmp_path, "--sparse", "-cf", packed, "hole"], check=True, timeout=60
    )
    with pytest.raises(BadSource, match="sparse"):
        take_in(packed, tmp_path / "in")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda path: path.symlink_to("/etc/passwd"), "links are not followed"),
        (lambda path: path.symlink_to("/etc"), "cannot be read as a regular file"),
        (os.mkfifo, "not a regular file"),
    ],
    ids=["link", "link to a directory", "pipe"],
)
def test_a_directory_with_anything_but_plain_files_is_refused(
    tmp_path: Path, make: Callable[[Path], None], why: str
) -> None:
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "a.c").write_text("x")
    make(tmp_path / "given" / "odd")
    with pytest.raises(BadSource, match=why):
        take_in(tmp_path / "given", tmp_path / "in")


@settings(max_examples=examples(60))
@given(seed=st.integers(0, 10**6))
def test_a_damaged_archive_is_taken_in_or_refused_in_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    rng, place = random.Random(seed), tmp_path_factory.mktemp("damaged")
    data = bytearray(tar(*SMALL, comment=COMMIT))
    for _ in range(rng.randrange(1, 30)):
        data[rng.randrange(4096)] = rng.randrange(256)
    try:
        found = taken(place, bytes(data))
        assert found.root.is_relative_to(place / "in")
    except BadSource as error:
        assert str(error).strip()  # noqa: PT017 - nothing else is ever raised
    assert {path.name for path in place.iterdir()} == {"archive", "in"}
