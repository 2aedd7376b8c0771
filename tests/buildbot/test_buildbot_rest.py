"""Answers of Buildbot's REST API are written by the reactor's thread alone.

In a process of its own, because a process has one reactor and can run it once.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import json
import threading

from buildbot.www.rest import V2RootResource
from twisted.internet import reactor, threads

from swingbot.adapters.buildbot import rest


class Request:
    method, finished, channel = METHOD, False, CHANNEL

    def setHeader(self, name, value):
        print(name.decode(), value.decode())

    def write(self, data):
        thread = threading.current_thread() is threading.main_thread()
        print("written by the", "reactor:" if thread else "pool:", data.decode())


def end(result):
    print("failed:" if result else "done", result or "")
    reactor.stop()


rest.write_from_the_reactor()
encoder = json.JSONEncoder(separators=(",", ":"))
answer = threads.deferToThread(
    V2RootResource._write_json_data, Request(), encoder, {"workers": ["ä"]}
)
answer.addBoth(end)
reactor.run()
"""


@pytest.mark.parametrize(
    ("method", "channel", "printed"),
    [
        (
            "b'GET'",
            "'open'",
            'content-length 22\nwritten by the reactor: {"workers":["\\u00e4"]}\n',
        ),
        ("b'HEAD'", "'open'", "content-length 22\n"),
        ("b'GET'", "None", ""),
    ],
    ids=["get", "head", "the client has gone"],
)
def test_an_answer_is_written_by_the_reactor(method: str, channel: str, printed: str) -> None:
    program = PROGRAM.replace("METHOD", method).replace("CHANNEL", channel)
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert (ended.stdout, ended.returncode) == (f"{printed}done \n", 0), ended.stderr
