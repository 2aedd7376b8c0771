"""Parts on hosts of their own: TLS, a secret for each worker, roles of the database,
sources over the network, and kills.
"""

from __future__ import annotations

import base64
import http.cookiejar
import itertools
import json
import os
import signal
import socket
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.attack import buildbot_origin
from tests.attack.target import Target
from tests.buildbot.fleet import SWINGBOT, TESTBOX, WORKER, Fleet
from tests.buildbot.lab import eventually
from tests.fakelinux import FakeCommit, make_fakelinux
from tests.postgres import Server

_numbers = itertools.count(1)
SLOW = 300.0  # seconds; a loaded machine has been seen to need 60 to start one process


@pytest.fixture
def fleet(own_server: Server, short_root: Path) -> Iterator[Fleet]:
    number = next(_numbers)
    fleet = Fleet(short_root / f"fleet{number}", own_server, f"fleet{number}")
    yield fleet
    fleet.stop()


def installed(fleet: Fleet) -> None:
    """What an operator does once, with the commands of the documentation."""
    fleet.run("db", "roles", "--url", fleet.admin_url)
    fleet.run("db", "upgrade")
    fleet.run("worker", "certificate", "--name", "127.0.0.1", "--out", f"{fleet.controller}/tls")
    for worker in ("builder", TESTBOX):
        fleet.bring(worker)


def family(fleet: Fleet, worker: str) -> list[psutil.Process]:
    """The worker and all that lives on its host, executors included."""
    found = []
    for one in psutil.process_iter():
        try:
            if one.environ().get("HOME") == str(fleet.root / worker):
                found.append(one)
        except psutil.Error:
            continue
    return found


class NoForeignRedirects(urllib.request.HTTPRedirectHandler):
    """Stops at a redirect to the public address, where no proxy is in this test."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        if newurl.startswith("https:"):
            return None
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class Browser:
    """Somebody who looks at Buildbot's own pages."""

    def __init__(self, fleet: Fleet) -> None:
        self._base = f"http://127.0.0.1:{fleet.port + 1}"
        # Secure cookies come back too: in service a proxy speaks TLS with the browser
        policy = http.cookiejar.DefaultCookiePolicy(secure_protocols=("http", "https"))
        self._opener = urllib.request.build_opener(
            urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar(policy)),
            NoForeignRedirects(),
        )

    def ask(self, path: str, body: bytes | None = None, **headers: str) -> int:
        """The status of the answer."""
        try:
            with self._opener.open(
                urllib.request.Request(f"{self._base}{path}", body, headers), timeout=120
            ) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    def sign_in(self, token: str) -> int:
        return self.ask(
            "/auth/login",
            Authorization="Basic " + base64.b64encode(f"anybody:{token}".encode()).decode(),
        )


def force(browser: Browser) -> int:
    """Start a build of the one builder that takes commands, Buildbot's own caretaker."""
    command = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "force", "params": {"reason": "by hand"}}
    ).encode()
    return browser.ask(
        "/api/v2/forceschedulers/__Janitor_force", command, **{"Content-Type": "application/json"}
    )


def check_pages(fleet: Fleet) -> None:
    """With `buildbot.pages = "operator"` only operators can read, and all commands are refused."""
    stranger, reader, operator = Browser(fleet), Browser(fleet), Browser(fleet)
    tokens = {
        role: json.loads(fleet.run("token", "create", "somebody", "--role", role, "--json"))[
            "token"
        ]
        for role in ("moderator", "operator")
    }
    assert (
        stranger.ask("/api/v2/workers"),
        stranger.ask("/sse/listen/workers/*/*"),
        stranger.sign_in("no token"),
    ) == (403, 404, 401)
    assert (reader.sign_in(tokens["moderator"]), reader.ask("/api/v2/workers")) == (401, 403)
    assert (operator.sign_in(tokens["operator"]), operator.ask("/api/v2/workers")) == (200, 200)
    assert force(operator) == 403
    target = Target(buildbot_port=fleet.port + 1, token=tokens["operator"])
    attacked = buildbot_origin.run(target)
    assert attacked.held, attacked.line


def check_commands(fleet: Fleet) -> None:
    """With `buildbot.control = "operator"` too, only operators can give commands."""
    stranger, operator = Browser(fleet), Browser(fleet)
    assert (stranger.ask("/api/v2/workers"), force(stranger)) == (403, 403)
    created = fleet.run("token", "create", "commander", "--role", "operator", "--json")
    token = json.loads(created)["token"]
    assert operator.sign_in(token) == 302  # to the public address
    assert force(operator) == 200
    # now with an https address: its origin is accepted, and the cookie is Secure
    target = Target(buildbot_port=fleet.port + 1, token=token)
    attacked = buildbot_origin.run(target, https=True)
    assert attacked.held, attacked.line
    assert stranger.ask("/api/v2/workers", Origin="https://lab.example") == 403
    assert operator.ask("/api/v2/workers", Origin="https://lab.example") == 200


def test_an_order_goes_through_a_fleet_whose_parts_are_killed(fleet: Fleet) -> None:
    installed(fleet)
    commits = make_fakelinux(fleet.root / "upstream", [FakeCommit(speed=80)])
    (fleet.root / "builder" / "secret").write_text("0123456789abcdef0123456789abcdef\n")
    for part in ("master", "web", "loop", "git", "builder", TESTBOX):
        fleet.start(part)

    fleet.ready(TESTBOX)
    eventually(
        "a wrong secret is reported on the worker's side",
        lambda: "the master rejected the secret" in fleet.log("builder"),
        SLOW,
    )
    assert "invalid login from user 'builder'" in fleet.log("master")
    fleet.run("worker", "secret", "builder", "--new")
    fleet.bring("builder")  # read at the next login: neither master nor worker is restarted
    fleet.ready("builder")
    context = ssl.create_default_context(cafile=str(fleet.controller / "tls" / "ca.pem"))
    with (
        socket.create_connection(("127.0.0.1", fleet.port + 2)) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as wrapped,
    ):
        assert wrapped.version() in ("TLSv1.2", "TLSv1.3")

    check_pages(fleet)

    eventually("the loop has begun", lambda: fleet.sql("SELECT 1 FROM testbox"), SLOW)
    fleet.run(
        "tree",
        "add",
        "linux",
        str(fleet.root / "upstream"),
        "--branch",
        "main",
        "--base",
        commits[0],
        "--job",
        "vm-hackbench.yaml",
    )
    eventually(
        "a boot has begun, so kernels were built, brought and fetched",
        lambda: fleet.testbox.starts() == 1,
        SLOW,
    )
    attempt = fleet.sql(
        "SELECT a.id FROM attempt a JOIN orders o ON o.id = a.order_id WHERE o.kind = 'boot' AND"
        " a.state = 'running' ORDER BY a.id LIMIT 1"
    )[0].id

    order = (
        fleet.root / TESTBOX / "state" / "state" / "attempts" / f"a{attempt}" / "order.json"
    ).read_text()
    assert str(fleet.controller) not in order
    for worker in ("builder", TESTBOX):
        for one in family(fleet, worker):
            try:
                seen = " ".join([*one.cmdline(), *one.environ().values(), one.cwd()])
            except psutil.NoSuchProcess:
                continue  # it ended in between
            assert str(fleet.controller) not in seen and "postgres" not in seen, seen
    users = {
        row.usename
        for row in fleet.sql(
            "SELECT usename FROM pg_stat_activity WHERE datname = current_database()"
        )
    }
    assert users == {"postgres", "swingbot_service"}  # the first is this test

    fleet.kill(TESTBOX)
    fleet.kill("master")
    fleet.config.write_text(
        fleet.config.read_text().replace(
            'pages = "operator"',
            'pages = "operator"\ncontrol = "operator"\npublic_url = "https://lab.example/"',
        )
    )
    fleet.start(TESTBOX)
    fleet.start("master")
    fleet.ready(TESTBOX, times=2)
    check_commands(fleet)
    fleet.testbox.let_go()
    eventually(
        "the attempt has ended",
        lambda: fleet.sql("SELECT 1 FROM attempt WHERE id = :a AND state = 'ended'", a=attempt),
        SLOW,
    )
    row = fleet.sql(
        (
            "SELECT a.outcome->>'status' AS status, (SELECT count(*) FROM attempt b WHERE"
            " b.order_id ="
            " a.order_id) AS n FROM attempt a WHERE a.id = :a"
        ),
        a=attempt,
    )[0]
    assert (row.status, row.n) == ("up", 1)
    eventually(
        "both kernels are built",
        lambda: (
            fleet.sql("SELECT count(*) AS n FROM kernel_build WHERE status = 'built'")[0].n == 2
        ),
        SLOW,
    )

    for part in ("builder", TESTBOX, "master", "loop", "web", "git"):
        assert fleet.kill(part, signal.SIGTERM) in (0, -signal.SIGTERM, 128 + signal.SIGTERM), part


def refusal(argv: list[str], cwd: Path, **env: str) -> str:
    done = subprocess.run(
        argv,
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "HOME": str(cwd)} | env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stdout + done.stderr
    return done.stderr


def test_plain_text_leaves_no_host(tmp_path: Path) -> None:
    state = {"SWINGBOT_PATHS_STATE": str(tmp_path / "state"), "SWINGBOT_BUILDBOT_HOST": "0.0.0.0"}
    assert "workers would send their secrets in plain text to 0.0.0.0" in refusal(
        [*SWINGBOT, "master"], tmp_path, **state
    )
    (tmp_path / "secret").write_text("0123456789abcdef\n")
    argv = [
        *WORKER,
        "serve",
        "builder",
        "--master",
        "192.0.2.1:8012",
        "--secret-file",
        "secret",
        "--state",
        "state",
    ]
    assert "the secret would go to 192.0.2.1 in plain text: give --tls-ca" in refusal(
        argv, tmp_path
    )


def spoken(context: ssl.SSLContext, connection: socket.socket) -> bytes:
    """The first bytes that come from a client; raises OSError if it hangs up instead."""
    with context.wrap_socket(connection, server_side=True) as wrapped:
        if said := wrapped.recv(100):
            return said
        raise OSError("it hung up")


def test_a_worker_whose_master_shows_another_certificate_says_so_and_does_not_log_in(
    tmp_path: Path,
) -> None:
    from swingbot.adapters import certificates

    right, wrong = (
        certificates.make(tmp_path / name, ["127.0.0.1"], 7) for name in ("right", "wrong")
    )
    (tmp_path / "secret").write_text("0123456789abcdef\n")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(wrong.certificate, wrong.key)
    log = tmp_path / "log"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(SLOW)
        port = listener.getsockname()[1]
        argv = [
            *WORKER,
            "serve",
            "builder",
            "--master",
            f"127.0.0.1:{port}",
            "--secret-file",
            "secret",
            "--tls-ca",
            str(right.ca),
            "--state",
            "state",
        ]
        with log.open("wb") as sink:
            worker = subprocess.Popen(
                argv,
                cwd=tmp_path,
                stdout=sink,
                stderr=sink,
                env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
            )
        try:
            connection, _ = listener.accept()
            connection.settimeout(60)
            with pytest.raises(OSError):  # the worker hangs up before it says a word
                spoken(context, connection)
            eventually(
                "it is reported",
                lambda: "no connection to the master: certificate verify failed" in log.read_text(),
            )
        finally:
            worker.kill()
            worker.wait()
    assert "Traceback" not in log.read_text()
