from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path

import pytest

from swingbot.adapters import artifacts
from swingbot.adapters.artifacts import Artifacts
from swingbot.core.model.artifact import ArtifactError, NoSpace, TooLarge, WrongDigest


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def store(tmp_path: Path) -> Artifacts:
    return Artifacts(tmp_path / "artifacts", limit=1000)


def files(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file()]


def test_what_was_put_can_be_read_and_putting_it_again_says_so(store: Artifacts) -> None:
    assert store.put(io.BytesIO(b"console"), sha(b"console")) is True
    assert store.put(io.BytesIO(b"console"), sha(b"console")) is False
    with store.open(sha(b"console")) as file:
        assert file.read() == b"console"


def test_bytes_that_do_not_fit_their_name_leave_nothing(store: Artifacts, tmp_path: Path) -> None:
    with pytest.raises(WrongDigest):
        store.put(io.BytesIO(b"other"), sha(b"console"))
    assert not store.has(sha(b"console"))
    assert files(tmp_path) == []


def test_a_file_over_the_limit_leaves_nothing(store: Artifacts, tmp_path: Path) -> None:
    with pytest.raises(TooLarge):
        store.put(io.BytesIO(b"x" * 1001), sha(b"x" * 1001))
    assert files(tmp_path) == []


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "A" * 64, "a" * 63, "a" * 64 + "\n"])
def test_only_a_sha256_is_a_name(store: Artifacts, name: str) -> None:
    with pytest.raises(ValueError, match="not a sha256"):
        store.path(name)


def test_a_full_disk_is_said_in_words(tmp_path: Path) -> None:
    store = Artifacts(tmp_path / "artifacts")
    sink = store.sink(sha(b"x" * 8_000_000))
    os.close(sink._file.fileno())  # the descriptor now belongs to a device that is always full
    os.dup2(os.open("/dev/full", os.O_WRONLY), sink._file.fileno())
    with pytest.raises(NoSpace, match="full"):
        sink.write(b"x" * 8_000_000)


def test_a_place_that_cannot_be_written_is_said_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(ArtifactError, match="cannot be written"):
        Artifacts(tmp_path / "file").sink(sha(b""))


def test_what_dead_uploads_left_is_swept_after_a_day(store: Artifacts) -> None:
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
