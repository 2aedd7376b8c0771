"""The same commands on the service's host and from elsewhere: the same bytes and exit status, and a
clear sentence for whatever answers in place of a service."""

from __future__ import annotations

import dataclasses
import json
import re
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest
from click.testing import CliRunner, Result

from swingbot.adapters import certificates
from swingbot.app import limits
from swingbot.app.cli import main
from swingbot.app.commands import requests
from swingbot.app.documents import PLURALS, Facts, ServiceAway
from swingbot.app.remote import connection
from swingbot.app.remote.http_documents import HttpDocuments
from swingbot.app.remote.login import Login
from swingbot.app.remote.no_answer import ServiceError
from swingbot.core.access.roles import Role
from swingbot.core.model.document_version import HEADER, VERSION
from swingbot_jobs import extras
from tests.database import fresh
from tests.postgres import Server
from tests.served import Served, served

VERBS: Final = (
    *(f"list {plural}" for plural in PLURALS),
    *(f"list {plural} --json" for plural in PLURALS),
    "list bisections --filter status=running --limit 1",
    "list bisections --filter colour=green",
    "list trees --limit 0",
    "list orders --json --limit 10000",
    "list orders --json --limit 3",
    "show c{comparison}",
    "show c{comparison} --counters",
    "show c{comparison} --json",
    "show c{running_comparison}",
    "show b{bisection}",
    "show b{bisection} --json",
    *(f"bisect log b{{{which}}}" for which in ("bisection", "running_bisection")),
    "bisect log b{bisection} --json",
    "bisect log b9999",
    "bisect log c{comparison}",
    "bisect explain b{bisection}",
    "bisect explain b9999",
    "bisect replay b{bisection}",
    "bisect visualize b{bisection} --ascii --width 90",
    "bisect visualize c{comparison}",
    "show i{incident}",
    "show i{incident} --json",
    "show r{report}",
    "show o{order}",
    "show v1",
    "show x{boot}",
    "show x{boot} --json",
    *(f"show c{{comparison}} --format {form}" for form in ("mail", "changelog", "csv", "lkp")),
    "show c{comparison} --format perf",
    "show b{running_bisection} --format mail",
    *(f"kcidb {id} --origin lab" for id in ("c{comparison}", "c{running_comparison}", "e1", "b1")),
    "kcidb c{comparison} --origin Lab:1",
    "show o{order} --format mail",
    "show c9999",
    "show e{comparison}",
    "show q1",
    "show t1",
    "status",
    "status --json",
    "wait c{comparison}",
    "wait c{comparison} --json --exit-code",
    "wait b{bisection}",
    "wait o{order}",
    "wait --idle --timeout 0",
)


@pytest.fixture(scope="module")
def web(pg: Server, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with fresh(pg, template) as url, served(url, tmp_path_factory.mktemp("remote")) as running:
        yield running


# What a clock changes between two commands: measured seconds, now, and the ends counted from now.
CLOCK: Final = re.compile(
    r'\d+\.\d{4,}|(?<="now": )"[^"]+"|(?<="until": )"[^"]+"|about [-\d]+ [\d:]+ UTC|^\[[^]]+ s\]',
    re.M,
)


def printed(said: Result) -> tuple[str, str]:
    """What a command printed, without what the clock changes."""
    return CLOCK.sub("", said.stdout), CLOCK.sub("", said.stderr)


def run(words: str, env: Mapping[str, str], stdin: str = "") -> Result:
    return CliRunner().invoke(main, words.split(), env=env, input=stdin)


def here(web: Served) -> dict[str, str]:
    settings = web.settings
    return {
        "SWINGBOT_DB_URL": settings.db.url,
        "SWINGBOT_PATHS_STATE": str(settings.state),
        "SWINGBOT_WEB_PORT": str(settings.web.port),
    }


def elsewhere(web: Served, tmp_path: Path, **more: str) -> dict[str, str]:
    return {
        "SWINGBOT_URL": f"http://127.0.0.1:{web.port}",
        "XDG_CONFIG_HOME": str(tmp_path),
        **more,
    }


@pytest.mark.parametrize("words", VERBS)
def test_a_command_prints_the_same_from_elsewhere(words: str, web: Served, tmp_path: Path) -> None:
    typed = words.format(**dataclasses.asdict(web.lab))
    for _ in range(3):  # a rounded time left may change between the two
        on_host = run(typed, here(web))
        from_elsewhere = run(typed, elsewhere(web, tmp_path))
        if printed(from_elsewhere) == printed(on_host):
            break
    assert from_elsewhere.exit_code == on_host.exit_code, from_elsewhere.output
    assert printed(from_elsewhere) == printed(on_host)


def test_a_login_is_kept_for_its_owner_alone_and_used_until_it_ends(
    web: Served, tmp_path: Path
) -> None:
    url = f"http://127.0.0.1:{web.port}"
    token = web.token("Ada", Role.SUBMITTER)["Authorization"].split()[1]
    env = {"XDG_CONFIG_HOME": str(tmp_path)}
    assert "not logged in" in run("login", env).output
    wrong = run(f"login {url}", env, "swingbot_" + "x" * 43)
    assert wrong.exit_code == 1 and "This token is invalid" in wrong.output
    file = tmp_path / "swingbot" / "login.json"
    assert not file.exists(), "a token that the service refuses is not kept"
    said = run(f"login {url}/", env, token + "\n")
    assert said.output == f"logged in to {url} as Ada (submitter)\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert run("login", env).output == said.output
    assert run("list trees", env).output == run("list trees", here(web)).output
    local = run("tree list", env)
    assert local.exit_code == 2 and f"you are logged in to {url}" in local.output
    file.chmod(0o644)
    assert f"chmod 600 {file}" in run("list trees", env).output
    file.chmod(0o600)
    assert run("logout", env).output == "logged out\n"
    assert run("logout", env).output == "was not logged in\n"


@pytest.mark.parametrize("extras_missing", [False, True])
def test_a_setting_that_outranks_the_login_is_named(
    extras_missing: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = {"XDG_CONFIG_HOME": str(tmp_path)}
    with stranger(200, SERVICE, b'{"who": "Ada", "role": "reader"}') as (url, _):
        assert run(f"login {url}", env, "x\n").exit_code == 0
    if extras_missing:
        monkeypatch.setitem(extras.PROBES, "master", ("a_module_that_nothing_installs",))
    state = str(tmp_path / "state")
    for words, variables, why in (
        ("compare a b", {"SWINGBOT_PATHS_STATE": state}, "run `unset SWINGBOT_PATHS_STATE`"),
        ("list trees", {"SWINGBOT_PATHS_STATE": state}, "run `unset SWINGBOT_PATHS_STATE`"),
        (f"--state {state} list trees", {}, "--state names a service on this host"),
    ):
        said = run(words, env | variables)
        assert said.exit_code != 0 and f"your login to {url} is not used" in said.output, words
        assert why in said.output and "swingbot login http" not in said.output, words
    file = tmp_path / "swingbot" / "login.json"
    file.unlink()
    assert "is not used" not in run("list trees", env | {"SWINGBOT_PATHS_STATE": state}).output


@pytest.mark.parametrize("url", ["http://lab.example", "http://10.0.0.1:8010"])
def test_a_token_is_not_sent_in_the_open_unless_asked_to(url: str, tmp_path: Path) -> None:
    env = {"XDG_CONFIG_HOME": str(tmp_path), "http_proxy": "http://127.0.0.1:9"}
    refused = run(f"login {url}", env, "swingbot_x\n")
    assert refused.exit_code == 2 and "could read your token" in refused.output
    for option in ("--insecure", "--anonymous"):  # asks for the service
        tried = run(f"login {url} {option}", env, "swingbot_x\n")
        assert tried.exit_code == 1 and "cannot be reached" in tried.output
    assert not (tmp_path / "swingbot").exists()
    by_variables = env | {"SWINGBOT_URL": url, "SWINGBOT_TOKEN": "x"}
    for words in ("list trees", "compare a b", "raw c1 --out x", "incident close i1", "login"):
        refused = run(words, by_variables)
        assert refused.exit_code == 2 and "could read your token" in refused.output, words
    for allowed in (by_variables | {"SWINGBOT_INSECURE": "1"}, env | {"SWINGBOT_URL": url}):
        tried = run("list trees", allowed)
        assert tried.exit_code == 1 and "cannot be reached" in tried.output


def test_a_login_remembers_that_its_token_may_be_sent_in_the_open(tmp_path: Path) -> None:
    """A name of this machine that is no loopback address."""
    env = {"XDG_CONFIG_HOME": str(tmp_path)}
    with stranger(200, SERVICE, b'{"who": "Ada", "role": "reader"}') as (url, seen):
        proxied = env | {"http_proxy": url, "no_proxy": ""}
        lab = "http://lab.example"
        assert run(f"login {lab} --insecure", proxied, "x\n").exit_code == 0
        assert run("login", proxied).exit_code == 0
        assert run("login", proxied | {"SWINGBOT_TOKEN": "y"}).exit_code == 0
        assert seen == ["Bearer x", "Bearer x", "Bearer y"]
        other = proxied | {"SWINGBOT_URL": "http://other.example", "SWINGBOT_TOKEN": "y"}
        assert run("login", other).exit_code == 2 and len(seen) == 3


def test_a_port_alone_finds_no_service(tmp_path: Path) -> None:
    said = run("--port 8010 list trees", {"SWINGBOT_PATHS_STATE": str(tmp_path)})
    assert said.exit_code == 1
    assert f"not running on {tmp_path}" in said.output
    assert "--port alone does not find a service" in said.output


def test_pages_that_need_a_token_say_so_to_a_command(db_url: str, tmp_path: Path) -> None:
    with served(db_url, tmp_path, SWINGBOT_WEB_READ="token") as web:
        refused = run("list trees", elsewhere(web, tmp_path))
        assert refused.exit_code == 1
        assert f"Then run `swingbot login http://127.0.0.1:{web.port}`" in refused.output
        token = web.token("Ada", Role.READER)["Authorization"].split()[1]
        allowed = run("list trees", elsewhere(web, tmp_path, SWINGBOT_TOKEN=token))
        assert allowed.exit_code == 0 and allowed.output == run("list trees", here(web)).output


Answer = tuple[int, dict[str, str], bytes]


class Stranger(BaseHTTPRequestHandler):
    """Answers every request with the server's `answer` for its address, or the one for all:
    status, headers and body.
    """

    def do_GET(self) -> None:
        self.server.seen.append(self.headers.get("authorization"))  # type: ignore[attr-defined]
        answers, answer = self.server.answers  # type: ignore[attr-defined]
        status, headers, body = answers.get(self.path, answer)
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_CONNECT = do_GET

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def stranger(
    status: int,
    headers: dict[str, str],
    body: bytes = b"",
    answers: Mapping[str, Answer] = MappingProxyType({}),
    host: str = "127.0.0.1",
    keys: ssl.SSLContext | None = None,
) -> Iterator[tuple[str, list[str | None]]]:
    with HTTPServer((host, 0), Stranger) as server:
        if keys is not None:
            server.socket = keys.wrap_socket(server.socket, server_side=True)
        seen: list[str | None] = []
        server.answers = answers, (status, headers, body)  # type: ignore[attr-defined]
        server.seen = seen  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http{'s' if keys else ''}://{host}:{server.server_port}", seen
        finally:
            server.shutdown()
            thread.join()


SERVICE: Final = {HEADER: str(VERSION)}
MOVED: Final = "https://lab.example/bot"


@pytest.mark.parametrize(
    ("words", "body", "said"),
    [
        ("list trees", b"[]", ""),
        ("list trees", b"{}", "something else than a list"),
        ("show x1 --json", b'{"id": "x1", "runs": [], "next": "a"}', "the same piece of x1"),
    ],
)
def test_a_service_whose_answers_have_no_end_is_left(
    words: str, body: bytes, said: str, tmp_path: Path
) -> None:
    endless = SERVICE | {"Link": '</trees.json?after=a>; rel="next"'}
    with stranger(200, endless, body) as (url, seen):
        found = run(words, {"SWINGBOT_URL": url, "XDG_CONFIG_HOME": str(tmp_path)})
    assert said in found.stderr and found.exit_code == (1 if said else 0), found.exception
    assert len(seen) <= 2


class Endless(BaseHTTPRequestHandler):
    """Answers every request with one more piece, and the cursor of another."""

    def do_GET(self) -> None:
        self.server.seen.append(self.path)  # type: ignore[attr-defined]
        after = f"a{len(self.server.seen)}"  # type: ignore[attr-defined]
        is_list = self.path.startswith("/trees")
        body = json.dumps(
            [{"name": "t"}] if is_list else {"id": "x1", "runs": [], "next": after}
        ).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header(HEADER, str(VERSION))
        self.send_header("Link", f'</trees.json?after={after}>; rel="next"')
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.parametrize(("words", "name"), [("show x1 --json", "x1"), ("list trees", "trees")])
def test_a_service_that_always_names_another_piece_is_left(
    words: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "ANSWER_PIECES", 40)
    with HTTPServer(("127.0.0.1", 0), Endless) as server:
        seen: list[str] = []
        server.seen = seen  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        env = {"SWINGBOT_URL": f"http://127.0.0.1:{server.server_port}"}
        said = run(words, env | {"XDG_CONFIG_HOME": str(tmp_path)})
        server.shutdown()
        thread.join()
    assert said.exit_code == 1 and f"does not end {name} after 40 pieces" in said.stderr
    assert len(seen) == 40


def test_all_pieces_of_a_document_count_as_one_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "ANSWER_BYTES", 1 << 20)
    document = {"id": "x1", "runs": [], "note": "x" * (600 << 10)}
    pieces = {
        address: (200, SERVICE, json.dumps(document | {"next": after}).encode())
        for address, after in (("/boot/x1.json", "a"), ("/boot/x1.json?after=a", None))
    }
    with stranger(404, SERVICE, answers=pieces) as (url, seen):
        env = {"SWINGBOT_URL": url, "XDG_CONFIG_HOME": str(tmp_path)}
        said = run("show x1 --json", env)
    assert said.exit_code == 1 and "answers with more than 1 MiB" in said.stderr
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("status", "headers", "body", "sentence"),
    [
        (200, {}, b"<html>sign in to the wifi", "is not a swingbot service"),
        (401, {}, b"<html>proxy", "is not a swingbot service"),
        (502, {}, b"<html>nginx", "something else answers there with status 502"),
        (302, {"Location": "/signin?to=trees.json"}, b"", "redirects to another page"),
        (302, {"Location": "http://[x"}, b"", "redirects to an invalid address"),
        (308, {"Location": f"{MOVED}/trees.json?limit=50"}, b"", f"swingbot login {MOVED}`"),
        (200, SERVICE, b"<html>", "something else than JSON"),
        (200, SERVICE, b"[" * 100_000, "something else than JSON"),
        (200, SERVICE | {"Content-Length": "100"}, b"[", "is cut off"),
        (200, {HEADER: "7"}, b"[]", "the command on this machine is too old"),
        (200, {HEADER: "0"}, b"[]", "the service is too old"),
        (503, SERVICE, b'{"detail": "The database is away."}', "The database is away."),
        (500, SERVICE, b"[]", "answers with status 500"),
        (400, SERVICE, b'{"detail": "no such filter"}', "no such filter"),
    ],
)
def test_whatever_answers_in_place_of_a_service_is_named(
    status: int, headers: dict[str, str], body: bytes, sentence: str, tmp_path: Path
) -> None:
    with stranger(status, headers, body) as (url, _):
        said = run("list trees", {"SWINGBOT_URL": url, "XDG_CONFIG_HOME": str(tmp_path)})
    assert said.exit_code == (2 if status == 400 else 1)
    assert sentence in said.output and said.output.count("\n") == 1


def test_a_token_never_follows_a_redirect(tmp_path: Path) -> None:
    with stranger(200, SERVICE, b"[]") as (other, seen):
        with stranger(302, {"Location": f"{other}/trees.json"}) as (url, _):
            env = {"SWINGBOT_URL": url, "SWINGBOT_TOKEN": "x", "XDG_CONFIG_HOME": str(tmp_path)}
            said = run("list trees", env)
        assert said.exit_code == 1 and f"redirects to {other}; the token was not" in said.output
        assert not seen


def test_a_proxy_that_refuses_a_large_request_is_not_taken_for_the_service() -> None:
    with stranger(413, {}, b"<html>nginx") as (url, _):
        asked = connection.Connection(Login(url=url))
        with pytest.raises(ServiceError, match="a proxy .* refuses a request of 2 KiB"):
            asked.post(dict, "/compare", {"bundle": "x" * 2048})


def test_what_is_no_http_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            with server.accept()[0] as client:
                client.recv(1 << 16)
                client.sendall(b"SSH-2.0-x\r\n")

        thread = threading.Thread(target=greet)
        thread.start()
        asked = connection.Connection(Login(url=f"http://127.0.0.1:{server.getsockname()[1]}"))
        with pytest.raises(ServiceAway, match="something else than HTTP answers there"):
            asked.json(list, "/trees.json")
        thread.join()


def test_a_proxy_on_the_way_is_named_without_its_password(tmp_path: Path) -> None:
    with stranger(403, {}) as (proxy, _):
        at = proxy.removeprefix("http://")
        env = {"https_proxy": f"http://ada:secret@{at}/", "no_proxy": ""}
        env |= {"SWINGBOT_URL": MOVED, "XDG_CONFIG_HOME": str(tmp_path)}
        said = run("list trees", env)
    assert said.exit_code == 1 and f"cannot be reached through the proxy {at}:" in said.output
    assert "secret" not in said.output


@pytest.mark.parametrize(
    ("days", "host", "authority", "advice"),
    [
        (30, "127.0.0.1", "ca.pem", ""),
        (30, "127.0.0.1", "", "For a certificate of your lab set SSL_CERT_FILE"),
        (30, "127.0.0.1", "nosuch", "nosuch: No such file"),
        (30, "127.0.0.1", "empty", "empty, which has no certificate"),
        (30, "127.0.0.2", "ca.pem", "Use the name that the certificate has"),
        (-1, "127.0.0.1", "ca.pem", "Check the clock of this machine: it says 20"),
    ],
)
def test_a_certificate_that_is_not_trusted_is_said_to_be_with_what_to_do(
    days: int,
    host: str,
    authority: str,
    advice: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(certificates, "_SKEW", timedelta(days=2))
    (tmp_path / "empty").touch()
    made = certificates.make(tmp_path, ["lab.example"], days)
    keys = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    keys.load_cert_chain(made.certificate, made.key)
    with stranger(200, SERVICE, b"[]", host=host, keys=keys) as (url, _):
        env = {"SWINGBOT_URL": url, "SSL_CERT_FILE": authority and str(tmp_path / authority)}
        said = run("list trees", env | {"XDG_CONFIG_HOME": str(tmp_path)})
    assert said.exit_code == (1 if advice else 0) and advice in said.output, said.output


def test_an_https_address_of_a_service_without_tls_is_named(tmp_path: Path) -> None:
    with stranger(200, SERVICE, b"[]") as (url, _):
        env = {"SWINGBOT_URL": url.replace("http", "https"), "XDG_CONFIG_HOME": str(tmp_path)}
        said = run("list trees", env)
    assert said.exit_code == 1 and "does its address begin with http://?" in said.output


def test_a_service_on_this_machine_is_not_asked_for_through_a_proxy(tmp_path: Path) -> None:
    """As behind `ssh -L`: a proxy has another 127.0.0.1, and would see the token."""
    with stranger(200, {}) as (proxy, seen), stranger(200, SERVICE, b"[]") as (url, asked):
        env = {"SWINGBOT_URL": url, "SWINGBOT_TOKEN": "x", "XDG_CONFIG_HOME": str(tmp_path)}
        said = run("list trees", env | {"http_proxy": proxy, "no_proxy": ""})
        assert said.exit_code == 0, said.output
        assert not seen and asked == ["Bearer x"]


def test_a_url_and_a_token_need_no_login_and_no_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script of a container has neither."""

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    with stranger(200, SERVICE, b"[]") as (url, asked):
        env = {"SWINGBOT_URL": url, "SWINGBOT_TOKEN": "x", "XDG_CONFIG_HOME": ""}
        assert run("list trees", env).exit_code == 0 and asked == ["Bearer x"]
        for words in ("login", "logout"):
            said = run(words, {"SWINGBOT_URL": url, "SWINGBOT_TOKEN": "", "XDG_CONFIG_HOME": ""})
            assert said.exit_code == 2 and "has no home directory" in said.output


def test_who_waits_outlives_a_restart_of_the_service(
    web: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = web.lab.running_comparison
    load, answers = HttpDocuments.progress, iter(["waits", "away", "away", "over"])

    def progress(documents: HttpDocuments, id_: str) -> Facts:
        if (answer := next(answers)) == "away":
            raise ServiceAway("http://lab cannot be reached: Connection refused")
        facts = load(documents, id_)
        return facts | {"status": "done", "over": True} if answer == "over" else facts

    monkeypatch.setattr(HttpDocuments, "progress", progress)
    monkeypatch.setattr(HttpDocuments, "news", lambda own, id_, seconds: progress(own, id_))
    monkeypatch.setattr(requests, "_AWAY_PAUSE_SECONDS", 0.0)
    said = run(f"wait c{running}", elsewhere(web, tmp_path))
    assert said.exit_code == 0
    assert said.stderr.count("Connection refused; trying again\n") == 2


def test_a_service_that_is_away_is_said_to_be(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        said = run("status", {"SWINGBOT_URL": url, "XDG_CONFIG_HOME": str(tmp_path)})
    assert said.exit_code == 1 and "cannot be reached: Connection refused" in said.output


@pytest.mark.parametrize(
    "url",
    [
        "lab.example",
        "ftp://lab.example",
        "http://",
        "http://a@b",
        "http://lab/?x",
        "http://[",
        "http://h:x",
    ],
)
def test_what_is_no_url_is_refused(url: str, tmp_path: Path) -> None:
    said = run(f"login {url} --anonymous", {"XDG_CONFIG_HOME": str(tmp_path)})
    assert said.exit_code == 2 and "is not the URL of a service" in said.output


def test_a_list_comes_whole_however_many_pieces_it_has(
    web: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "PIECE", 2)
    away = elsewhere(web, tmp_path)
    for words in ("list orders", "list orders --limit 5", "list metrics --limit 10000"):
        assert run(words, away).output == run(words, here(web)).output
