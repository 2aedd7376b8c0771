"""The root file system of a boot goes to the artifact store once, and a boot counts without it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from swingbot_worker.executor import __main__ as executor
from swingbot_worker.executor.attempt_directory import AttemptDirectory
from swingbot_worker.executor.client import RequestRefused, ServiceUnavailable

WHOLE, ARCHIVE = "a" * 64, "b" * 64


class Service:
    """Stands for the web service: keeps uploaded files, or raises `trouble`."""

    def __init__(self, trouble: Exception | None = None) -> None:
        self.kept: dict[str, bytes] = {}
        self.asked = 0
        self.trouble = trouble

    def put_file(self, file: Path, sha256: str) -> bool:
        self.asked += 1
        if self.trouble is not None:
            raise self.trouble
        new = sha256 not in self.kept
        self.kept[sha256] = file.read_bytes()
        return new


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AttemptDirectory:
    monkeypatch.setenv("SWINGBOT_PATHS_CACHE", str(tmp_path / "cache"))
    kept = tmp_path / "cache" / "rootfs" / WHOLE
    kept.mkdir(parents=True)
    (kept / "rootfs.cpio").write_bytes(b"with what is not free")
    (kept / "handed-on.cpio").write_bytes(b"without")
    made = AttemptDirectory(tmp_path / "a1")
    made.out.mkdir(parents=True)
    (made.out / "rootfs.json").write_text(json.dumps({"whole": WHOLE, "archive": ARCHIVE}))
    return made


def upload(place: AttemptDirectory, service: Service, files: dict[str, Any] | None = None) -> None:
    executor._upload_rootfs(
        place,
        {"files": {"rootfs.json": {}} if files is None else files},
        service,  # type: ignore[arg-type]  # a service
    )


def test_it_is_the_copy_that_may_be_handed_on_and_nothing_else(place: AttemptDirectory) -> None:
    service = Service()
    upload(place, service)
    assert service.kept == {ARCHIVE: b"without"}


def test_a_build_and_an_older_boot_upload_none(place: AttemptDirectory) -> None:
    service = Service()
    upload(place, service, files={"bzImage": {}})
    assert service.asked == 0


def test_one_that_was_cleared_from_the_cache_is_done_without(
    place: AttemptDirectory, tmp_path: Path
) -> None:
    (tmp_path / "cache" / "rootfs" / WHOLE / "handed-on.cpio").unlink()
    service = Service()
    upload(place, service)
    assert service.asked == 0


def test_a_service_that_refuses_it_still_gets_the_outcome_and_one_that_is_away_is_waited_for(
    place: AttemptDirectory,
) -> None:
    upload(place, Service(RequestRefused("too large")))
    with pytest.raises(ServiceUnavailable):
        upload(place, Service(ServiceUnavailable("no answer")))
