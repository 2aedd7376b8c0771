from __future__ import annotations

import hashlib
import io
import os
import random
from pathlib import Path

import pytest
import zstandard

from swingbot.adapters import artifacts
from swingbot.adapters.artifacts import ArtifactDirectory
from swingbot.adapters.zstd_file import FRAME_BYTES
from swingbot.core.model.artifact import ArtifactError, Damaged, NoSpace, TooLarge, WrongDigest


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def store(tmp_path: Path) -> ArtifactDirectory:
    return ArtifactDirectory(tmp_path / "artifacts", limit=1000)


def files(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file()]


def test_what_was_put_can_be_read_and_putting_it_again_says_so(store: ArtifactDirectory) -> None:
    assert store.put(io.BytesIO(b"console"), sha(b"console")) is True
    assert store.put(io.BytesIO(b"console"), sha(b"console")) is False
    with store.open(sha(b"console")) as file:
        assert file.read() == b"console"


def test_bytes_that_do_not_fit_their_name_leave_nothing(
    store: ArtifactDirectory, tmp_path: Path
) -> None:
    with pytest.raises(WrongDigest):
        store.put(io.BytesIO(b"other"), sha(b"console"))
    assert not store.has(sha(b"console"))
    assert files(tmp_path) == []


def test_a_file_over_the_limit_leaves_nothing(store: ArtifactDirectory, tmp_path: Path) -> None:
    with pytest.raises(TooLarge):
        store.put(io.BytesIO(b"x" * 1001), sha(b"x" * 1001))
    assert files(tmp_path) == []


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "A" * 64, "a" * 63, "a" * 64 + "\n"])
def test_only_a_sha256_is_a_name(store: ArtifactDirectory, name: str) -> None:
    with pytest.raises(ValueError, match="not a sha256"):
        store.has(name)


@pytest.mark.parametrize(
    "content",
    [random.Random(1).randbytes(8_000_000), b"x" * 8_000_000],
    ids=["while it is written", "at its end"],
)
def test_a_full_disk_is_said_in_words_and_leaves_nothing(tmp_path: Path, content: bytes) -> None:
    store = ArtifactDirectory(tmp_path / "artifacts")
    sink = store.sink(sha(content))
    os.close(sink._file.fileno())  # the descriptor now belongs to a device that is always full
    os.dup2(os.open("/dev/full", os.O_WRONLY), sink._file.fileno())
    with pytest.raises(NoSpace, match="full"):  # noqa: PT012 - it is said where the buffer runs over, here or there
        sink.write(content)
        sink.commit()
    assert files(tmp_path) == []


def test_files_are_compressed_and_read_at_any_place(tmp_path: Path) -> None:
    store = ArtifactDirectory(tmp_path / "artifacts")
    content = b"".join(b"[%9d.000000] a line of a console\n" % number for number in range(80_000))
    assert len(content) > 2 * FRAME_BYTES
    store.put(io.BytesIO(content), sha(content))
    (stored,) = files(tmp_path)
    assert stored.stat().st_size < len(content) / 5
    with store.open(sha(content)) as file:
        for place in (
            0,
            FRAME_BYTES - 3,
            2 * FRAME_BYTES + 17,
            len(content) - 5,
            len(content),
            len(content) + 9,
        ):
            assert file.seek(place) == place
            assert file.read(10) == content[place : place + 10]
        assert file.seek(-20, io.SEEK_END) == len(content) - 20
        assert file.read() == content[-20:]


def test_any_zstd_reads_a_stored_file(store: ArtifactDirectory, tmp_path: Path) -> None:
    store.put(io.BytesIO(b"console"), sha(b"console"))
    (stored,) = files(tmp_path)
    with zstandard.ZstdDecompressor().stream_reader(
        stored.open("rb"), read_across_frames=True
    ) as plain:
        assert plain.read() == b"console"


def test_an_empty_file_is_a_file(store: ArtifactDirectory) -> None:
    store.put(io.BytesIO(b""), sha(b""))
    with store.open(sha(b"")) as file:
        assert file.read() == b""


@pytest.mark.parametrize("end", [0, 1, 8, 20, 100, -1, -9, -20])
def test_a_stored_file_that_was_cut_is_damaged_wherever_it_was_cut(
    store: ArtifactDirectory, tmp_path: Path, end: int
) -> None:
    content = random.Random(2).randbytes(900)
    store.put(io.BytesIO(content), sha(content))
    (stored,) = files(tmp_path)
    stored.write_bytes(stored.read_bytes()[:end])
    with pytest.raises(Damaged, match="truncated|damaged"):
        store.open(sha(content)).read()


def test_one_wrong_bit_on_the_disk_is_noticed_by_whoever_reads_it(
    store: ArtifactDirectory, tmp_path: Path
) -> None:
    content = random.Random(3).randbytes(900)
    store.put(io.BytesIO(content), sha(content))
    (stored,) = files(tmp_path)
    whole = stored.read_bytes()
    for place in range(0, len(whole), 7):
        stored.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        try:
            read = store.open(sha(content)).read()
        except Damaged:
            continue
        assert read == content, place  # a bit that says nothing, in a header


def test_a_place_that_cannot_be_written_is_said_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(ArtifactError, match="cannot be written"):
        ArtifactDirectory(tmp_path / "file").sink(sha(b""))


def test_what_dead_uploads_left_is_swept_after_a_day(store: ArtifactDirectory) -> None:
    store.sink(sha(b"never finished"))
    assert store.sweep() == 0
    assert store.sweep(now=2**33) == 1


def test_the_secret_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    file = tmp_path / "state" / "secret"
    first = artifacts.secret(file)
    assert artifacts.secret(file) == first
    assert len(first) == 32
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["secret"]
