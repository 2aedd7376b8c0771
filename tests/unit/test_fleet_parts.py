"""The pure and the small parts of a fleet: addresses, endpoints, certificates, secrets, and what
a worker never loads."""

from __future__ import annotations

import dataclasses
import http.server
import os
import ssl
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from swingbot.adapters import certificates, worker_secrets
from swingbot.app import buildmaster, git_server
from swingbot.app.cli import main
from swingbot.app.settings import (
    BuildbotSection,
    DbSection,
    GitSection,
    PathSection,
    Settings,
    SettingsError,
    WebSection,
    load,
)
from swingbot_jobs.contract.compiler import ANNOUNCEMENT
from swingbot_worker import serve
from swingbot_worker.executor.client import ExchangeClient, ServiceUnavailable

SETTINGS = Settings(web=WebSection(port=9000))


def with_buildbot(**chosen: str | int) -> Settings:
    return dataclasses.replace(SETTINGS, buildbot=BuildbotSection(**chosen))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("lab.example.org:8012", ("lab.example.org", 8012)),
        ("192.0.2.1:1", ("192.0.2.1", 1)),
        ("[2001:db8::1]:8012", ("2001:db8::1", 8012)),
    ],
)
def test_a_masters_address_is_host_and_port(text: str, parsed: tuple[str, int]) -> None:
    assert serve.parse_address(text) == parsed


@pytest.mark.parametrize(
    "text", ["lab", "lab:", ":8012", "lab:0", "lab:65536", "2001:db8::1", "lab:80x", "a b:1"]
)
def test_what_is_no_address_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(serve.CannotServe, match="write it as HOST:PORT"):
        serve.parse_address(text)


def test_plain_text_connects_to_loopback_and_nowhere_else(tmp_path: Path) -> None:
    for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost"):
        assert serve.connection_string(host, 1, None).startswith(
            "tcp:"
        ) and buildmaster.is_loopback(host)
    for host in ("192.0.2.1", "lab.example.org", "0.0.0.0", "::", "localhost.example.org"):
        with pytest.raises(serve.CannotServe, match="in plain text"):
            serve.connection_string(host, 1, None)
        assert serve.connection_string(host, 1, tmp_path).startswith("tls:")
        assert not buildmaster.is_loopback(host)


def test_colons_of_addresses_and_paths_do_not_part_endpoints() -> None:
    assert (
        serve.connection_string("2001:db8::1", 7, Path("/a:b"))
        == r"tls:host=2001\:db8\:\:1:port=7:trustRoots=/a\:b"
    )


def test_the_master_takes_plain_text_on_loopback_and_tls_elsewhere(tmp_path: Path) -> None:
    assert buildmaster.worker_endpoint(SETTINGS) == "tcp:9002:interface=127.0.0.1"
    for host in ("0.0.0.0", "::", "192.0.2.1", ""):
        with pytest.raises(SettingsError, match="plain text"):
            buildmaster.worker_endpoint(with_buildbot(host=host))
    made = certificates.make(tmp_path, ["lab.example.org"], 7)
    tls = with_buildbot(
        host="0.0.0.0",
        tls_certificate=str(made.certificate),
        tls_key=str(made.key),
        worker_port=9989,
    )
    assert buildmaster.worker_endpoint(tls).startswith("ssl:9989:interface=0.0.0.0:privateKey=")
    with pytest.raises(SettingsError, match=r"buildbot.tls_key is not set"):
        buildmaster.worker_endpoint(with_buildbot(tls_certificate=str(made.certificate)))
    with pytest.raises(SettingsError, match=r"buildbot.tls_key: cannot read "):
        buildmaster.worker_endpoint(
            with_buildbot(tls_certificate=str(made.certificate), tls_key=str(tmp_path / "nothing"))
        )


def test_workers_elsewhere_are_named_by_globs() -> None:
    settings = with_buildbot(elsewhere="builder, testbox-rack*")
    assert [
        buildmaster.is_elsewhere(settings, name)
        for name in ("builder", "testbox-rack3", "testbox-vm-icount")
    ] == [True, True, False]


def in_state(tmp_path: Path) -> Settings:
    return dataclasses.replace(SETTINGS, paths=PathSection(state=str(tmp_path)))


def test_each_testbox_has_a_worker_with_a_secret(tmp_path: Path) -> None:
    settings = in_state(tmp_path)
    buildmaster.make_secrets(settings)
    assert "testbox-vm-icount" in buildmaster.worker_names(settings)
    table = buildmaster.builders(settings)
    assert table["boot-vm-icount"]["workers"] == ["testbox-vm-icount"]
    assert table["kernel"]["workers"] == ["builder"]
    file = buildmaster.secret_file(settings, "testbox-vm-icount")
    state = ["--state", str(tmp_path)]
    answer = CliRunner().invoke(main, [*state, "worker", "secret", "testbox-vm-icount"])
    assert answer.stdout.strip() == worker_secrets.read(file)


@pytest.mark.parametrize(
    ("name", "announces_compilers"), [("testbox-rack3", False), ("builder", True)]
)
def test_a_worker_logs_in_under_its_name_and_a_build_worker_announces_its_compilers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, announces_compilers: bool
) -> None:
    secret, names = tmp_path / "secret", []
    worker_secrets.make(secret)
    monkeypatch.setattr(serve, "serve", lambda name, *_: names.append(name))
    options = ["--master", "127.0.0.1:1", "--secret-file", str(secret), "--state", str(tmp_path)]
    answer = CliRunner().invoke(serve.command, [name, *options])
    assert (answer.exit_code, names) == (0, [name])
    assert (tmp_path / "info" / ANNOUNCEMENT).exists() == announces_compilers


def test_addresses_to_connect_to_follow_from_those_listened_on() -> None:
    assert (
        SETTINGS.master_address == "127.0.0.1:9002"
        and SETTINGS.exchange_url == "http://127.0.0.1:9000"
    )
    assert with_buildbot(host="0.0.0.0").master_address == "127.0.0.1:9002"
    assert serve.parse_address(with_buildbot(host="2001:db8::1").master_address) == (
        "2001:db8::1",
        9002,
    )
    assert (
        with_buildbot(host="0.0.0.0", address="lab.example.org").master_address
        == "lab.example.org:9002"
    )
    assert (
        dataclasses.replace(
            SETTINGS, web=WebSection(host="0.0.0.0", exchange_url="https://lab.example.org/")
        ).exchange_url
        == "https://lab.example.org"
    )
    assert (
        with_buildbot(public_url="https://lab.example.org/buildbot").buildbot_url
        == "https://lab.example.org/buildbot/"
    )
    assert with_buildbot(pages="off").buildbot_url == ""


def test_unknown_words_for_buildbots_pages_are_refused() -> None:
    with pytest.raises(
        SettingsError, match=r"buildbot.pages: 'closed' is not one of open, operator, off"
    ):
        load(None, {"SWINGBOT_BUILDBOT_PAGES": "closed"})


def test_buildbot_takes_the_configuration_with_pages_open_for_operators_or_off(
    tmp_path: Path,
) -> None:
    from buildbot.config.master import MasterConfig

    def taken(**chosen: str | float) -> MasterConfig:
        settings = dataclasses.replace(
            with_buildbot(**chosen),  # type: ignore[arg-type]
            paths=PathSection(state=str(tmp_path)),
            db=DbSection(url="postgresql://none@127.0.0.1:1/none"),
        )
        return MasterConfig.loadFromDict(buildmaster.config(settings), "master.cfg")

    assert (
        taken().www["port"] == "tcp:9001:interface=127.0.0.1"
        and len(taken().www["authz"].allowRules) == 1
    )
    assert len(taken(pages="operator").www["authz"].allowRules) == 2
    assert taken(pages="off").www["port"] is None
    janitors = [
        sum("Janitor" in name for name in taken(logs_days=days).schedulers) for days in (7.0, 0.0)
    ]
    assert janitors[0] > 0 and janitors[1] == 0
    assert (tmp_path / "worker-secrets" / "builder").exists()


def test_a_certificate_is_good_for_its_names_and_the_ca_stays(tmp_path: Path) -> None:
    first = certificates.make(tmp_path, ["lab.example.org", "192.0.2.1"], 7)
    ca = first.ca.read_bytes()
    assert [file.stat().st_mode & 0o777 for file in (first.key, first.ca_key, first.ca)] == [
        0o600,
        0o600,
        0o644,
    ]
    old = first.certificate.read_bytes()
    second = certificates.make(tmp_path, ["lab.example.org"], 7)
    assert second.ca.read_bytes() == ca and second.certificate.read_bytes() != old
    for name in ("lab.example.org", "localhost", "127.0.0.1"):
        assert shaken(second, ca.decode(), name)
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shaken(second, ca.decode(), "other.example.org")
    with pytest.raises(ssl.SSLCertVerificationError, match="verify failed"):
        shaken(second, certificates.make(tmp_path / "other", ["x"], 7).ca.read_text(), "localhost")


def shaken(made: certificates.CertificateFiles, ca: str, name: str) -> bool:
    """Whether a client that trusts `ca` and wants `name` takes the certificate: a handshake in
    memory."""
    server_side, client_side = (
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER),
        ssl.create_default_context(cadata=ca),
    )
    server_side.load_cert_chain(made.certificate, made.key)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client_side.wrap_bio(to_client, to_server, server_hostname=name),
        server_side.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(10):
        left = []
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                left.append(end)
        if not left:
            return True
    return False


class Unwanted(http.server.BaseHTTPRequestHandler):
    """A web service that waits for no attempt."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"wanted": false}')

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_the_exchange_over_https_talks_to_whom_the_given_ca_knows_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, other = (
        certificates.make(tmp_path / name, ["127.0.0.1"], 7) for name in ("made", "other")
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.certificate, made.key)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Unwanted) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"https://127.0.0.1:{server.server_port}"
            monkeypatch.setenv("SWINGBOT_EXCHANGE_CA", str(made.ca))
            assert not ExchangeClient(url, "a1.x").ask("a1").wanted
            for ca in (other.ca, None):
                monkeypatch.setenv("SWINGBOT_EXCHANGE_CA", str(ca or ""))
                with pytest.raises(ServiceUnavailable):  # which cancels no attempt
                    ExchangeClient(url, "a1.x").ask("a1")
        finally:
            server.shutdown()
            thread.join()


def test_a_ca_that_lost_its_key_and_a_strange_key_are_reported(tmp_path: Path) -> None:
    made = certificates.make(tmp_path, ["lab"], 7)
    made.ca_key.write_bytes(certificates.make(tmp_path / "other", ["lab"], 7).ca_key.read_bytes())
    with pytest.raises(certificates.CertificateError, match="is not the key of"):
        certificates.make(tmp_path, ["lab"], 7)
    made.ca_key.unlink()
    with pytest.raises(
        certificates.CertificateError,
        match=r"ca.key is missing, although the other file of the CA exists",
    ):
        certificates.make(tmp_path, ["lab"], 7)
    with pytest.raises(certificates.CertificateError, match="not a host name or IP address"):
        certificates.make(tmp_path / "third", ["a" * 70], 7)


def test_secrets_are_made_once_renewed_on_demand_and_readable_by_their_owner_alone(
    tmp_path: Path,
) -> None:
    file = tmp_path / "secrets" / "builder"
    assert worker_secrets.make(file) and not worker_secrets.make(file)
    first = worker_secrets.read(file)
    assert (
        len(first) == 64
        and file.stat().st_mode & 0o777 == 0o600
        and file.parent.stat().st_mode & 0o077 == 0
    )
    worker_secrets.renew(file)
    assert worker_secrets.read(file) != first and [one.name for one in file.parent.iterdir()] == [
        "builder"
    ]
    file.write_text("short\n")
    with pytest.raises(worker_secrets.SecretError, match="5 characters"):
        worker_secrets.read(file)


def test_the_secret_of_a_worker_is_printed_and_strange_names_are_refused(tmp_path: Path) -> None:
    state = ["--state", str(tmp_path)]
    first = CliRunner().invoke(main, [*state, "worker", "secret", "builder"])
    assert (
        first.exit_code == 0
        and (tmp_path / "worker-secrets" / "builder").read_text() == first.stdout
    )
    assert "swingbot-worker serve builder --master 127.0.0.1:8012" in first.stderr
    assert CliRunner().invoke(main, [*state, "worker", "secret", "builder"]).stdout == first.stdout
    assert CliRunner().invoke(
        main, [*state, "worker", "secret", "builder", "--new"]
    ).stdout not in ("", first.stdout)
    strange = CliRunner().invoke(main, [*state, "worker", "secret", "../x"])
    assert strange.exit_code == 2 and "worker '../x' does not exist" in strange.stderr


def test_a_ca_bundle_becomes_a_directory_of_single_certificates(tmp_path: Path) -> None:
    pems = [certificates.make(tmp_path / name, ["lab"], 7).ca.read_text() for name in ("a", "b")]
    (tmp_path / "bundle.pem").write_text("# two\n" + "\n".join(pems))
    (tmp_path / "state").mkdir()
    directory = serve.trust(tmp_path / "bundle.pem", tmp_path / "state")
    assert [file.read_text().strip() for file in sorted(directory.iterdir())] == [
        pem.strip() for pem in pems
    ]
    (tmp_path / "bundle.pem").write_text(pems[1])
    assert len(list(serve.trust(tmp_path / "bundle.pem", tmp_path / "state").iterdir())) == 1
    (tmp_path / "bundle.pem").write_text("nothing")
    with pytest.raises(serve.CannotServe, match="no certificate in this file"):
        serve.trust(tmp_path / "bundle.pem", tmp_path / "state")


def test_the_git_server_serves_the_mirror_and_takes_nothing(tmp_path: Path) -> None:
    settings = dataclasses.replace(SETTINGS, git=GitSection(host="192.0.2.1", port=9419))
    argv = git_server.argv(settings)
    assert argv[-1] == str(settings.mirror) and {
        "--strict-paths",
        "--disable=receive-pack",
        "--listen=192.0.2.1",
        "--port=9419",
    } <= set(argv)
    env = git_server.environment({"PATH": "/bin", "GIT_DIR": "/elsewhere", "GIT_CONFIG_COUNT": "1"})
    assert "GIT_DIR" not in env and "GIT_CONFIG_VALUE_2" in env and env["GIT_CONFIG_COUNT"] == "3"


def test_no_module_of_a_worker_knows_the_master_or_a_database() -> None:
    program = """
import importlib, pkgutil, sys, swingbot_worker
for module in pkgutil.walk_packages(swingbot_worker.__path__, "swingbot_worker."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
packages = {name.partition(".")[0] for name in sys.modules}
print(sorted({"swingbot", "swingbot_db", "sqlalchemy", "psycopg2", "alembic"} & packages))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=dict(os.environ),
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
