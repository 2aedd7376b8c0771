"""What may be fetched from, as text; and that git itself keeps to it, on real repositories and
servers."""

from __future__ import annotations

import random
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot.adapters.git import Mirror
from swingbot.core.access.urls import BadUrl, check_path, remote
from swingbot.service.ports import GitError
from tests.fakelinux import FakeCommit, make_fakelinux


@pytest.mark.parametrize(
    ("url", "protocol", "host"),
    [
        ("https://git.example.org/pub/linux.git", "https", "git.example.org"),
        ("https://git.example.org:8443/~user/linux+x.git/", "https", "git.example.org"),
        ("git://git.example.org/linux.git", "git", "git.example.org"),
        ("ssh://git@git.example.org:2222/linux.git", "ssh", "git.example.org"),
        ("ssh://[2001:db8::1]/linux.git", "ssh", "2001:db8::1"),
        ("git@git.example.org:linux/linux.git", "ssh", "git.example.org"),
        ("/srv/linux.git", "file", ""),
        ("./linux", "file", ""),
        ("../with space/linux", "file", ""),
    ],
)
def test_https_git_ssh_and_paths_are_understood(url: str, protocol: str, host: str) -> None:
    found = remote(url)
    assert (found.url, found.protocol, found.host) == (url, protocol, host)


def test_a_file_url_of_the_operator_is_its_path() -> None:
    assert (
        remote("file:///srv/linux.git").url
        == remote("file://localhost/srv/linux.git").url
        == "/srv/linux.git"
    )


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("ext::sh -c touch% /tmp/x", "remote helper"),
        ("fd::17", "remote helper"),
        ("transport::https://git.example.org/x", "remote helper"),
        ("--upload-pack=touch /tmp/x", "like an option"),
        ("-utouch /tmp/x", "like an option"),
        ("-", "like an option"),
        ("http://git.example.org/x.git", "http:// is not supported"),
        ("ftp://git.example.org/x.git", "ftp:// is not supported"),
        ("file://other.example.org/x.git", "another host"),
        ("ssh://-oProxyCommand=touch/x", "plain host name"),
        ("https:///x.git", "plain host name"),
        ("https://git.example.org:0/x.git", "plain host name"),
        ("https://git.example.org:99999/x.git", "plain host name"),
        ("https://ada:secret@git.example.org/x.git", "user or password"),
        ("https://token@git.example.org/x.git", "user or password"),
        ("ssh://ada:secret@git.example.org/x.git", "user or password"),
        ("git://ada@git.example.org/x.git", "user or password"),
        ("https://git.example.org/-x", "its path has characters"),
        ("https://git.example.org/x;y", "its path has characters"),
        ("https://git.example.org/x?y=z", "its path has characters"),
        ("https://git.example.org/a b", "its path has characters"),
        ("-oProxyCommand=touch:x", "like an option"),
        ("git.example.org:-x", "neither a path"),
        ("git@-evil:x", "neither a path"),
        ("nonsense", "neither a path"),
        ("", "not a valid repository"),
        (" /srv/x", "not a valid repository"),
        ("/srv/x\n", "not a valid repository"),
        ("/srv/x\0y", "not a valid repository"),
        ("/" + "x" * 1000, "not a valid repository"),
        ("https://git.example.org/\u202egit", "not a valid repository"),
    ],
)
def test_everything_else_is_refused_in_a_sentence(url: str, sentence: str) -> None:
    with pytest.raises(BadUrl, match=sentence) as refused:
        remote(url)
    assert (
        "secret" not in str(refused.value)
        and "\n" not in str(refused.value)
        and len(str(refused.value)) < 300
    )


HEADS = ("https://", "ssh://", "git@", "ext::", "-", "/", "file://")


@given(
    st.text(max_size=60)
    | st.builds("{}{}{}".format, st.sampled_from(HEADS), st.text(max_size=40), st.text(max_size=9))
)
def test_whatever_is_given_is_a_repository_or_a_sentence(text: str) -> None:
    try:
        found = remote(text)
    except BadUrl:
        return
    assert (
        not found.url.startswith("-") and not found.host.startswith("-") and found.url.isprintable()
    )
    assert (
        found.protocol in ("https", "git", "ssh", "file")
        and "::" not in found.url.partition("/")[0]
    )


def test_paths_are_those_that_the_operator_lists_wherever_dots_lead() -> None:
    check_path(remote("/srv/git/linux.git"), ["/srv/git/*"])
    check_path(remote("/anywhere"), ["*"])
    check_path(remote("https://git.example.org/x"), [])
    for path in ("/srv/git/../secret", "/srv/gitx", "/etc", "../srv/git/x"):
        with pytest.raises(BadUrl, match=r"not listed in git\.paths"):
            check_path(remote(path), ["/srv/git/*"])


@pytest.fixture
def linux(tmp_path: Path) -> Path:
    make_fakelinux(tmp_path / "linux", [FakeCommit(speed=99)])
    return tmp_path / "linux"


def test_the_mirror_fetches_from_no_path_that_is_not_listed(tmp_path: Path, linux: Path) -> None:
    mirror = Mirror(tmp_path / "mirror.git", [f"{tmp_path}/other/*"])
    with pytest.raises(GitError, match="not listed"):
        mirror.fetch_branch("t", str(linux), "main")
    with pytest.raises(GitError, match="not listed"):
        mirror.remote_tip(str(linux), "main")
    assert Mirror(tmp_path / "mirror.git", [f"{tmp_path}/*"]).fetch_branch("t", str(linux), "main")


@pytest.mark.parametrize("ref", ["-x", "a b", "a:b", "a..b", "x^{tree}", "", "*", "a\nb"])
def test_a_branch_is_a_name_and_nothing_else(tmp_path: Path, linux: Path, ref: str) -> None:
    mirror = Mirror(tmp_path / "mirror.git")
    for ask in (mirror.fetch_branch, mirror.resolve_remote):
        with pytest.raises(GitError, match="not a valid name of"):
            ask("t", str(linux), ref)


def test_git_reaches_nothing_by_a_protocol_that_was_not_asked_for(
    tmp_path: Path, linux: Path
) -> None:
    """Below swingbot's own check: git itself is restricted to one protocol."""
    mirror = Mirror(tmp_path / "mirror.git")
    for protocol, url in (("https", str(linux)), ("", str(linux)), ("file", "ext::sh -c touch% x")):
        done = mirror._run("fetch", "--", url, "main", protocol=protocol)
        assert done.rc != 0 and "not allowed" in done.err, url


def test_what_is_larger_than_the_limit_is_not_fetched_and_leaves_nothing(
    tmp_path: Path, linux: Path
) -> None:
    (linux / "large").write_bytes(random.Random(1).randbytes(300_000))
    for n in range(120):  # enough objects that git keeps them as one pack
        (linux / f"f{n}").write_text(f"{n}\n")
    subprocess.run(["git", "-C", str(linux), "add", "."], check=True)
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(["git", "-C", str(linux), *identity, "commit", "-q", "-m", "large"], check=True)
    small = Mirror(tmp_path / "small.git", fetch_bytes=100_000)
    with pytest.raises(GitError, match=r"larger than 0 MiB, the limit of a fetch"):
        small.fetch_branch("t", str(linux), "main")
    assert list((small.path / "objects" / "pack").iterdir()) == []
    assert Mirror(tmp_path / "large.git").fetch_branch("t", str(linux), "main")


class Redirecting(BaseHTTPRequestHandler):
    """Sends every question on to another address, which it notes if it is asked."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(302)
        self.send_header(
            "Location",
            f"http://127.0.0.1:{self.server.server_port}/elsewhere{self.path}",  # type: ignore[attr-defined]
        )
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def redirecting() -> Iterator[tuple[str, list[str]]]:
    asked: list[str] = []
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), type("Handler", (Redirecting,), {"asked": asked})
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/linux.git", asked
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_server_that_sends_elsewhere_is_not_followed(
    tmp_path: Path, redirecting: tuple[str, list[str]]
) -> None:
    """As every fetch is done; over http, which only the test allows, to do without a
    certificate."""
    from swingbot.adapters.git import _CAREFUL

    url, asked = redirecting
    done = Mirror(tmp_path / "mirror.git")._run(*_CAREFUL, "ls-remote", "--", url, protocol="http")
    assert done.rc != 0 and len(asked) == 1 and "elsewhere" not in asked[0]
