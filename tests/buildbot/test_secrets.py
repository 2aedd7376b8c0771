"""A secret is stored in a file that only its owner can read, and nowhere else:
no log, page, command line, property, and no other file.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest
import sqlalchemy as sa

from swingbot.adapters import artifacts
from swingbot.app import supervision
from swingbot.core.model.dispatch import token
from swingbot.web.access.session import operator_key
from tests.buildbot.lab import Lab, eventually
from tests.buildbot.stub_testbox import NAME, StubTestbox
from tests.buildbot.test_dispatch import TESTBOX_WORKER, boxed, raw_logs, wait_for_end

__all__ = ["boxed"]
PASSWORD = "a-password-of-the-database-42"
PAGES = (
    "/",
    "/status.json",
    "/login",
    "/healthz",
    "/testboxes.json",
    "/orders.json",
    "/trees.json",
    "/moderation.json",
    "/compare",
    f"/testbox/{NAME}",
)


@pytest.fixture
def running(boxed: tuple[Lab, StubTestbox, int]) -> Iterator[tuple[Lab, StubTestbox, int]]:
    """The web service, the master and the worker of the stub testbox, with a password in the
    address of the database.
    """
    lab, testbox, attempt = boxed
    url = (
        sa.make_url(lab.settings.db.url)
        .set(password=PASSWORD)
        .render_as_string(hide_password=False)
    )
    lab.settings = dataclasses.replace(
        lab.settings, db=dataclasses.replace(lab.settings.db, url=url)
    )
    for name in ("web", "buildbot-master", TESTBOX_WORKER):
        lab.start(name)
    yield lab, testbox, attempt
    testbox.let_go()


def cli(lab: Lab, *words: str) -> str:
    env = supervision.environment(lab.settings, {})
    return subprocess.run(
        [sys.executable, "-m", "swingbot.app.cli", *words],
        env=env,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def use(lab: Lab) -> tuple[dict[str, str], str]:
    """Make a token, sign in with it, with the key, and with nonsense.

    Secrets by what they are, and all that was answered.
    """
    made = json.loads(cli(lab, "token", "create", "Ada", "--role", "moderator", "--json"))["token"]
    key = operator_key(artifacts.secret(lab.settings.secret_file))
    said = [cli(lab, "settings"), cli(lab, "token", "log")]
    with httpx.Client(base_url=f"http://127.0.0.1:{lab.settings.web.port}", timeout=30) as client:
        for given in (made, key, "nonsense"):
            said.append(client.post("/login", data={"key": given}).text)
        session = client.cookies["swingbot"]
        said += [client.get(path).text for path in PAGES]
        for headers in (
            {"Authorization": f"Bearer {made}"},
            {"Authorization": "Bearer swingbot_" + "x" * 43},
        ):
            said.append(
                client.post("/moderation/switch", data={"act": "nothing"}, headers=headers).text
            )
    secrets = {
        "a person's token": made,
        "the operator's key": key,
        "a session": session,
        "the database's password": PASSWORD,
    }
    return secrets, "\n".join(said)


def command_lines() -> str:
    found = []
    for one in psutil.process_iter():
        try:
            found.append("\n".join(one.cmdline()))
        except psutil.Error:
            continue
    return "\n".join(found)


def holders(state: Path, secret: str) -> list[Path]:
    """Files that hold `secret`."""
    found = []
    for file in state.rglob("*"):
        try:
            if file.is_file() and not file.is_symlink() and secret.encode() in file.read_bytes():
                found.append(file)
        except OSError:
            continue
    return found


def test_no_secret_is_anywhere_but_in_files_of_its_owner(
    running: tuple[Lab, StubTestbox, int],
) -> None:
    lab, testbox, attempt = running
    eventually("the web service answers", lambda: answers(lab))
    secrets, said = use(lab)
    key = artifacts.secret(lab.settings.secret_file)
    secrets |= {"the service's secret": key.hex(), "an attempt's token": token(key, attempt)}
    secrets |= {
        f"the secret of {file.name}": file.read_text().strip()
        for file in lab.settings.worker_secrets.glob("*")
        if file.is_file()
    }
    assert len(secrets) >= 7
    eventually("the boot has begun", testbox.starts)
    while_it_runs = command_lines()
    testbox.let_go()
    wait_for_end(lab, attempt)
    shown = {
        "a command line": while_it_runs + command_lines(),
        "an answer": said,
        "Buildbot's pages": raw_logs(lab),
    }
    leaks = [
        f"{what} in {where}"
        for what, secret in secrets.items()
        for where, text in shown.items()
        if secret in text
    ]
    for what, secret in secrets.items():
        for file in holders(lab.settings.state, secret):
            if file.suffix == ".log" or file.stat().st_mode & 0o077:
                leaks.append(f"{what} in {file.relative_to(lab.settings.state)}")
    assert leaks == []


def answers(lab: Lab) -> bool:
    try:
        return (
            httpx.get(f"http://127.0.0.1:{lab.settings.web.port}/healthz", timeout=10).status_code
            == 200
        )
    except httpx.HTTPError:
        return False


def test_a_leak_would_be_found(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "web.log").write_text(f"trying {PASSWORD}\n")
    assert holders(tmp_path, PASSWORD) == [tmp_path / "a" / "web.log"]
    child = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()", PASSWORD], stdin=subprocess.PIPE
    )
    try:
        assert PASSWORD in command_lines()
    finally:
        child.communicate()
