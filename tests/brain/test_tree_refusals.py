"""A tree that is refused whatever its repository contains is refused before anything is fetched."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import pytest

from swingbot.core.model.records import JobFile
from swingbot.service.ports import RequestError
from swingbot.service.watch.trees import NewTree, add_tree
from tests.fakes.loop import JOB
from tests.fakes.memory_brain import MemoryBrain


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    """The URL of a git server that closes every connection, and the connections it had."""
    arrived: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            while True:
                try:
                    client, address = listening.accept()
                except OSError:
                    return
                arrived.append(str(address))
                client.close()

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"git://127.0.0.1:{listening.getsockname()[1]}/linux.git", arrived
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def new(url: str, **more: Any) -> NewTree:
    given: dict[str, Any] = {
        "name": "linux",
        "url": url,
        "branch": "main",
        "base": "v6.1",
        "job_files": [JOB],
        "testboxes": ["vm-icount"],
        "paths": [],
        "kconfig": "vm-x86_64",
        "compiler": "gcc",
        **more,
    }
    return NewTree(**given)


NAMES: Final = ("", "-x", "a b", "a/b", "../x", "a..b", "a.lock", "a.", "x" * 64, "a:b", "\u00e9")
REFUSED: Final[tuple[tuple[dict[str, Any], str], ...]] = (
    *(({"name": name}, "is not a valid name of a tree; use 1 to 63 letters") for name in NAMES),
    ({"name": "a\x1b[2J"}, "is not a valid name of a tree"),
    ({"branch": "-x"}, "'-x' is not a valid name of a branch"),
    ({"base": "a..b"}, "'a..b' is not a valid name of a branch"),
    ({"url": "ext::sh -c true"}, "remote helper"),
    ({"kconfig": "none"}, "none"),
    ({"compiler": "gcc; true"}, "gcc; true"),
    ({"testboxes": ["toaster"]}, "'toaster' does not exist"),
    ({"job_files": []}, "at least one job"),
    ({"job_files": [JobFile(name="x.yaml", text="jobs: [")]}, "x.yaml"),
    ({"job_files": [replace(JOB, text=f"swap: zram\n{JOB.text}")]}, "add the fragment mm"),
)


def test_a_tree_is_refused_before_its_server_hears_of_it(
    brain: MemoryBrain, server: tuple[str, list[str]]
) -> None:
    url, arrived = server
    for more, sentence in REFUSED:
        with pytest.raises(RequestError, match=sentence):
            add_tree(brain.lab, new(**{"url": url} | more))
        assert arrived == [], more
    assert brain.store.db.trees == {}
    assert brain.store.db.specs == {}
    with pytest.raises(RequestError):
        add_tree(brain.lab, new(url))
    assert arrived, "a valid tree asks its server"


def test_another_tree_of_a_known_name_is_refused_before_its_server_hears_of_it(
    brain: MemoryBrain, server: tuple[str, list[str]]
) -> None:
    url, arrived = server
    add_tree(brain.lab, new(str(brain.repo), base="main"))
    with pytest.raises(RequestError, match="already exists with a different url, branch; "):
        add_tree(brain.lab, new(url, branch="other"))
    assert arrived == []
