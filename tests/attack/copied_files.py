"""A submitter's patch of a few KB whose files are copies of one large file, and the kit of such a
comparison.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import httpx
import psutil
import sqlalchemy as sa

from swingbot_db.engine import make_engine
from tests.attack.target import PAUSE_SECONDS, Result, Target, skipped

NAME: Final = "copied-files"
WANTED: Final = "refused before git applies it, with nothing left; a kit's patch is asked for once"
REFUSED: Final = (60, 40)  # copies of 20 MB
ACCEPTED: Final = 40  # of 1 MB
TEMPORARY_BYTES: Final = 20 << 20
SECOND_SECONDS: Final = 0.1  # of processor time, for the second kit


def run(target: Target) -> Result:
    """Send such patches, and ask twice for the kit of one that is accepted."""
    if target.state is None or target.pid is None or not target.submitter:
        return skipped("give --state and --fill")
    objects, held, lines = target.state / "mirror.git" / "objects", True, []
    headers = {"Authorization": f"Bearer {target.submitter}"}
    with httpx.Client(base_url=target.url, headers=headers, timeout=600, trust_env=False) as client:
        for copies in REFUSED:
            before, spent = _left(objects), _seconds(target.pid)
            answer = client.post("/compare", json=_request("big", copies))
            took, written = _seconds(target.pid) - spent, _left(objects) - before
            held &= answer.status_code == 400 and "MiB together" in answer.text and written == 0
            lines.append(
                f"{copies} copies: {answer.status_code} in {took:.1f} s, {written >> 20} MB written"
            )
        answer = client.post("/compare", json=_request("medium", ACCEPTED))
        held &= answer.status_code in (200, 201)
        lines.append(f"{ACCEPTED} smaller ones: {answer.status_code}")
        if not held:
            return Result(held, f"{'; '.join(lines)} {answer.text[:300]}")
        number = answer.json()["id"]
        _end(target, number)
        path = f"/comparison/{number}/reproduce.tar.gz"
        kits, most = [], [0]
        for _ in range(2):
            spent = _seconds(target.pid)
            with _watched(target, most):
                kits.append(httpx.get(target.url + path, timeout=600, trust_env=False))
            took = _seconds(target.pid) - spent
            lines.append(f"kit: {kits[-1].status_code} in {took:.2f} s")
    # Without boots, which cost nothing, the kit is refused once its patches are there.
    held &= kits[0].status_code == 404 and "boots: none came up" in kits[0].text
    held &= kits[0].content == kits[1].content
    held &= took < SECOND_SECONDS and most[0] < TEMPORARY_BYTES
    return Result(held, f"{'; '.join(lines)} of processor; {most[0] >> 20} MB of temporary files")


def _request(name: str, copies: int) -> dict[str, object]:
    files = (
        f"diff --git a/{name} b/c{n}\nsimilarity index 99%\ncopy from {name}\ncopy to c{n}\n"
        f"--- a/{name}\n+++ b/c{n}\n@@ -1,2 +1,2 @@\n-{line(0)}+copy {n}\n {line(1)}"
        for n in range(copies)
    )
    patch = "".join(files)
    return {"tree": TREE, "base": "base", "head": "base", "patch": patch, "boots": 1}


TREE: Final = "copied"
FILES: Final = {"big": 1_000_000, "medium": 50_000}  # lines


def line(number: int) -> str:
    return f"#define R {number:09d}\n"


def history() -> str:
    """Return the repository of the tree as input of `git fast-import`: branches base and main, both
    with the large files.
    """
    kernel = {"Makefile": "x\n", "Kconfig": "x\n", "init/main.c": "x\n"}
    kernel |= {name: "".join(map(line, range(lines))) for name, lines in FILES.items()}
    who = "committer A <a@example.org> 1700000000 +0000\ndata 2\nx\n"
    files = "".join(
        f"M 100644 inline {name}\ndata {len(text)}\n{text}\n" for name, text in kernel.items()
    )
    change = "M 100644 inline init/main.c\ndata 2\ny\n\n"
    commits = f"commit refs/heads/base\n{who}{files}reset refs/heads/main\nfrom refs/heads/base\n"
    return f"{commits}commit refs/heads/main\n{who}{change}"


def _end(target: Target, id: str) -> None:
    """End a comparison, as its operator or its boots would: only then there is a kit."""
    engine = make_engine(target.database)
    with engine.begin() as conn:
        done = "UPDATE comparison SET status = 'done' WHERE id = :id"
        conn.execute(sa.text(done), {"id": int(id[1:])})
    engine.dispose()


def _seconds(pid: int) -> float:
    """Processor time of the service, with that of the processes that it ran."""
    return sum(psutil.Process(pid).cpu_times()[:4])


@contextmanager
def _watched(target: Target, most: list[int]) -> Iterator[None]:
    """Note the most bytes of temporary files of the service during the block."""
    end = threading.Event()

    def watch() -> None:
        while not end.wait(PAUSE_SECONDS / 5):
            most[0] = max(most[0], _temporary(target))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


def _temporary(target: Target) -> int:
    place = target.temporary or Path(tempfile.gettempdir())
    files: dict[int, int] = {}  # bytes by inode
    with suppress(psutil.Error, OSError):
        for process in (web := psutil.Process(target.pid), *web.children(recursive=True)):
            for link in Path(f"/proc/{process.pid}/fd").iterdir():
                with suppress(OSError):
                    if os.readlink(link).startswith(f"{place}/"):
                        found = link.stat()
                        files[found.st_ino] = found.st_size
    for file in (one for some in place.glob("swingbot-*") for one in some.rglob("*")):
        with suppress(OSError):
            files[file.stat().st_ino] = file.stat().st_size
    return sum(files.values())


def _left(path: Path) -> int:
    """Bytes of all files below `path`."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
