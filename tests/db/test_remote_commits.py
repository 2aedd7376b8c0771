"""Commits of a checkout that the service lacks travel with the request of a table: real git, a real
service; what is refused leaves nothing."""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from swingbot.adapters.git import Mirror
from swingbot.app.keep.retain import retain
from swingbot.app.remote.checkout import Checkout
from swingbot.core.access.roles import Role
from swingbot.core.patchset.bundle import read_bundle
from swingbot.service.ports import RequestError
from tests.asking import Serve, Site
from tests.db.test_remote_tables import elsewhere, here, run
from tests.fakelinux import FakeCommit, make_fakelinux
from tests.fakes.dirty_checkout import a_dirty_checkout, left
from tests.patch_series import ENVIRONMENT

WHO = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "Dev"), ("EMAIL", "dev@example.org"))
}


def git(repo: Path, *words: str, stdin: bytes = b"", date: int = 1_780_000_000) -> bytes:
    dates = {f"GIT_{role}_DATE": f"@{date} +0000" for role in ("AUTHOR", "COMMITTER")}
    done = subprocess.run(
        ["git", "-C", str(repo), *words],
        check=True,
        input=stdin,
        capture_output=True,
        env=ENVIRONMENT | WHO | dates,
    )
    return done.stdout


def commit(repo: Path, path: str, text: str) -> str:
    (repo / path).parent.mkdir(parents=True, exist_ok=True)
    (repo / path).write_text(text)
    git(repo, "add", path)
    git(repo, "commit", "-qm", f"{path}: change")
    return git(repo, "rev-parse", "HEAD").decode().strip()


@pytest.fixture
def site(serve: Serve) -> Site:
    return serve()


@pytest.fixture
def checkout(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone of the tree, in which the command runs."""
    path = tmp_path / "checkout"
    subprocess.run(["git", "clone", "-q", site.linux, path], check=True, env=ENVIRONMENT)
    monkeypatch.chdir(path)
    return path


def mirror_of(site: Site) -> Mirror:
    return Mirror(site.web.settings.mirror)


def refs(site: Site, under: str) -> list[str]:
    names = git(mirror_of(site).path, "for-each-ref", "--format=%(refname)", under)
    return names.decode().split()


def state(site: Site) -> tuple[Any, ...]:
    """All that a request could leave: refs, objects, marks, rows."""
    path = mirror_of(site).path
    files = sorted(str(file) for file in (path / "objects").rglob("*") if file.is_file())
    marks = sorted(file.name for file in (path / "swingbot-sent").glob("*"))
    rows = site.web.conn.execute(sa.text("SELECT count(*) FROM comparison")).scalar_one()
    site.web.conn.rollback()
    return refs(site, "refs"), files, marks, rows


def trusts(site: Site) -> dict[str, str]:
    rows = site.web.conn.execute(sa.text("SELECT commit, trust FROM variant")).all()
    site.web.conn.rollback()
    return {row.commit: row.trust for row in rows}


def test_the_commits_since_head_left_the_branch_become_a_table(
    site: Site, checkout: Path, tmp_path: Path
) -> None:
    made = [commit(checkout, f"mm/new{number}.c", "int x;\n") for number in range(3)]
    ada, before = elsewhere(site, tmp_path), state(site)
    planned = run("compare --dry-run", ada)
    assert planned.exit_code == 0, planned.output
    assert f"range: {site.commits[-1][:12]}..HEAD, since HEAD left the branch" in planned.output
    assert "sends 3 commits of" in planned.output
    assert all(one[:12] in planned.output for one in made)
    assert state(site) == before, "a plan leaves nothing"
    queued = run("compare --yes", ada)
    assert queued.exit_code == 0, queued.output
    assert queued.stdout.startswith("c1"), queued.stdout
    people = refs(site, "refs/swingbot/people")
    assert {name.rpartition("/")[2] for name in people} == set(made)
    assert all(name.startswith("refs/swingbot/people/ada-submitter-") for name in people)
    trusted = trusts(site)
    assert [trusted[one] for one in made] == ["untrusted"] * 3
    assert trusted[site.commits[-1]] == "trusted"
    again = run("compare --yes", ada)
    assert again.exit_code == 0 and again.stdout == queued.stdout, "the same table"
    assert "sends" not in again.output, "nothing is missing any more"


def test_names_are_those_of_the_checkout_and_base_and_tip_those_of_the_tree(
    site: Site, checkout: Path, tmp_path: Path
) -> None:
    git(checkout, "tag", "v1", site.commits[0])
    git(checkout, "branch", "tip", site.commits[0])
    git(checkout, "checkout", "-qb", "fix")
    made = commit(checkout, "mm/new.c", "int x;\n")
    git(checkout, "checkout", "-q", "main")
    ada = elsewhere(site, tmp_path)
    said = run("experiment v1 fix tip --dry-run --json", ada)
    assert said.exit_code == 0 and "sends 1 commit of" in said.stderr, said.output
    rows = {row["name"]: row["commit"] for row in json.loads(said.stdout)["rows"]}
    assert rows == {"v1": site.commits[0], "fix": made, "tip": site.commits[-1]}


def test_uncommitted_changes_are_refused_or_sent_as_a_commit_of_their_own(
    site: Site, checkout: Path, tmp_path: Path
) -> None:
    ada, before = elsewhere(site, tmp_path), state(site)
    head = commit(checkout, "mm/new.c", "int x;\n")
    (checkout / "mm/new.c").write_text("int y;\n")
    (checkout / "notes").write_text("mine\n")
    index = (checkout / ".git/index").read_bytes()
    refused = run("compare --yes", ada)
    assert refused.exit_code == 2
    assert "has uncommitted changes, such as mm/new.c" in refused.output
    assert "--dirty" in refused.output and state(site) == before
    dry = run("compare --dirty --dry-run", ada)
    assert dry.exit_code == 0 and "uncommitted changes on" in dry.output, dry.output
    assert run("compare --dirty --yes", ada).stdout == run("compare --dirty --yes", ada).stdout
    made = {name.rpartition("/")[2] for name in refs(site, "refs/swingbot/people")} - {head}
    (dirty,) = made
    path = mirror_of(site).path
    assert git(path, "show", f"{dirty}:mm/new.c") == b"int y;\n"
    assert git(path, "rev-parse", f"{dirty}^").decode().strip() == head
    assert "notes" not in git(path, "ls-tree", "-r", "--name-only", dirty).decode()
    assert (checkout / "mm/new.c").read_text() == "int y;\n"
    assert (checkout / ".git/index").read_bytes() == index
    assert git(checkout, "rev-parse", "HEAD").decode().strip() == head


def test_uncommitted_changes_are_measured_on_the_host_too(
    site: Site, checkout: Path, tmp_path: Path
) -> None:
    a_dirty_checkout(checkout)
    before, mirror = left(checkout), state(site)
    ada, on_host = elsewhere(site, tmp_path), here(site)
    words = "compare tip HEAD --dirty --boots 5"
    plans = [json.loads(run(f"{words} --dry-run --json", env).stdout) for env in (on_host, ada)]
    assert plans[0] == plans[1] and state(site) == mirror
    (tip, head) = plans[0]["rows"]
    assert tip["commit"] == site.commits[-1]
    assert head["name"] == "HEAD" and head["subject"].startswith("uncommitted changes on")
    asked = run(f"{words} --yes", on_host)
    assert asked.exit_code == 0 and "untracked files, such as untracked" in asked.stderr
    assert refs(site, "refs/swingbot/people") == [f"refs/swingbot/people/operator/{head['commit']}"]
    assert trusts(site)[head["commit"]] == "untrusted"
    assert git(mirror_of(site).path, "show", f"{head['commit']}:both") == b"bb\n"
    assert run(f"{words} --yes", on_host).stdout == asked.stdout, "the same table"
    vouched = run(f"{words} --trusted --yes", on_host)
    assert vouched.exit_code == 0 and trusts(site)[head["commit"]] == "trusted"
    assert left(checkout) == before
    plain = run("compare tip HEAD --dry-run", on_host)
    assert plain.exit_code == 2, "without --dirty, names on the host are those of its trees"


def test_who_did_not_send_a_commit_can_neither_see_nor_use_it(
    site: Site, checkout: Path, tmp_path: Path
) -> None:
    ada = elsewhere(site, tmp_path)
    token = site.web.token("Bob", Role.SUBMITTER)
    bob = ada | {"SWINGBOT_TOKEN": token["Authorization"].split()[1]}
    made = commit(checkout, "mm/new.c", "int x;\n")
    assert run("compare --yes", ada).exit_code == 0
    asked = {"commits": [made, site.commits[0]]}
    known = site.web.client.post("/commits/known", json=asked, headers=token)
    assert known.json() == {"known": [site.commits[0]]}
    # no checkout has it, so the name reaches the service as it is
    document = {"tree": "fake", "base": "base", "head": made, "dry_run": True}
    refused = site.web.client.post("/compare", json=document, headers=token)
    assert refused.status_code == 400 and "is not in branch main" in refused.json()["detail"]
    sent = run("compare base HEAD --dry-run", bob)
    assert sent.exit_code == 0 and "sends 1 commit" in sent.output, "who has it may send it too"


def test_a_token_made_with_trust_vouches_for_what_it_sends_and_another_of_its_name_does_not(
    site: Site, checkout: Path
) -> None:
    made = commit(checkout, "mm/new.c", "int x;\n")
    words = "token create Ada --role submitter --trust --json"
    ada = json.loads(run(words, here(site)).stdout)
    vouching = {"Authorization": f"Bearer {ada['token']}"}
    once, plain = {"Idempotency-Key": "once"}, site.web.token("Ada", Role.SUBMITTER)
    keys = {
        "head": made,
        "bundle": base64.b64encode(bundle_of(checkout, f"{site.commits[-1]}..main")).decode(),
    }
    dry = site.json(vouching, **keys, dry_run=True)
    assert dry.status_code == 200, dry.text
    assert _scalar(site, "SELECT count(*) FROM sent_commit") == 0, "a plan leaves nothing"
    first = site.json(vouching | once, **keys).json()["id"]
    assert site.json(plain | once, **keys).status_code in (200, 201)
    second = site.json(plain, **keys).json()["id"]
    bisected = {"range": f"base..{made}", "metric": "hackbench.throughput", "tree": "fake"}
    assert site.web.client.post("/bisect", json=bisected, headers=plain).status_code == 201
    assert first != second and site.head_of(second).trust == "untrusted"
    found = "SELECT array_agg((trust, voucher)::text ORDER BY trust) FROM variant WHERE commit"
    assert _scalar(site, f"{found} = '{made}'") == [f"(trusted,{ada['id']})", "(untrusted,)"]
    log = [line for line in run("token log", here(site)).stdout.splitlines() if "vouch " in line]
    assert len(log) == 1 and log[0].split()[-4:] == [str(ada["id"]), f"{first}:", "1", "commit"]


def test_a_service_that_names_other_branches_learns_nothing_of_them(tmp_path: Path) -> None:
    here = tmp_path / "linux"
    base, *_ = make_fakelinux(here, [FakeCommit(speed=99)])
    git(here, "checkout", "-qb", "secret")
    secret = commit(here, "mm/secret.c", "int x;\n")
    git(here, "checkout", "-q", "main")
    asked: list[str] = []

    def known(commits: Sequence[str]) -> list[str]:
        asked.extend(commits)
        return [f"{base}\nsecret"]  # git reads a commit a line

    with pytest.raises(RequestError, match="no recent commit"):
        Checkout(here).to_send(["HEAD"], known, dirty=False)
    assert asked and secret not in asked


def test_names_in_a_request_have_limits(site: Site) -> None:
    token, long = site.web.token("Bob", Role.SUBMITTER), "x" * 50_000
    asked = {"commits": [site.commits[0]], "tree": long}
    bodies: dict[str, list[dict[str, Any]]] = {
        "/commits/known": [asked],
        "/compare": [
            {"tree": "fake", "base": "base", "rows": [{"name": "a", "ref": long}]},
            {"tree": "fake", "range": "base..tip", "paths": [long]},
        ],
    }
    for address, documents in bodies.items():
        for document in documents:
            refused = site.web.client.post(address, json=document, headers=token)
            assert refused.status_code == 400 and len(refused.json()["detail"]) < 400, address


def test_a_commit_that_a_tree_gets_later_is_trusted_as_the_tree_is(
    site: Site, checkout: Path, tmp_path: Path
) -> None:
    made = commit(checkout, "mm/new.c", "int x;\n")
    assert run("compare --yes", elsewhere(site, tmp_path)).exit_code == 0
    mirror = mirror_of(site)
    assert mirror.facts(made).made_here
    git(site.linux, "fetch", "-q", str(checkout), "HEAD")
    git(site.linux, "reset", "-q", "--hard", "FETCH_HEAD")
    mirror.fetch_branch("fake", str(site.linux), "main")
    assert not mirror.facts(made).made_here


def test_commits_that_no_kernel_needs_go_with_the_daily_retention(
    site: Site, checkout: Path, tmp_path: Path
) -> None:
    """As those of a request whose service died before it was recorded."""
    wanted, ada = commit(checkout, "mm/new.c", "int x;\n"), elsewhere(site, tmp_path)
    assert run("compare --yes", ada).exit_code == 0
    before, left = state(site), commit(checkout, "mm/new.c", "int y;\n")
    with mirror_of(site).quarantine() as aside:
        aside.unbundle(read_bundle(bundle_of(checkout, f"{wanted}..main")), ada_of(site))
        aside.admit()
    assert mirror_of(site).sent() == {wanted, left}
    retain(site.web.settings, site.web.engine, datetime.now(UTC), really=True)
    assert state(site) == before and mirror_of(site).sent() == {wanted}


def ada_of(site: Site) -> str:
    (name,) = {name.split("/")[3] for name in refs(site, "refs/swingbot/people")}
    return name


def test_a_checkout_of_something_else_is_named(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-qb", "main")
    commit(other, "README", "x\n")
    monkeypatch.chdir(other)
    ada = elsewhere(site, tmp_path)
    said = run("compare", ada)
    assert said.exit_code == 2 and f"no recent commit of {other} is in a tree" in said.output
    monkeypatch.chdir(tmp_path)
    assert "name the kernels" in run("compare", ada).output
    assert "not a git checkout" in run("compare base --dirty", ada).output


def test_a_replaced_commit_is_compared_as_it_is_sent(
    site: Site, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = commit(checkout, "mm/new.c", "int x;\n")
    git(checkout, "replace", "--graft", made, site.commits[0])
    (checkout / "mm/new.c").write_text("int y;\n")
    for name, value in WHO.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GIT_LITERAL_PATHSPECS", "1")
    said = run("compare --dirty --dry-run", elsewhere(site, tmp_path))
    assert said.exit_code == 0, said.output
    assert f"range: {site.commits[-1][:12]}..HEAD" in said.stderr
    assert "sends 2 commits of" in said.stderr


def test_a_checkout_that_cannot_be_sent_from_says_why(
    site: Site, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = elsewhere(site, tmp_path)
    git(checkout, "checkout", "-qb", "one")
    commit(checkout, "mm/new.c", "int x;\n")
    git(checkout, "checkout", "-qb", "two", "main")
    commit(checkout, "mm/new.c", "int y;\n")
    with pytest.raises(subprocess.CalledProcessError):
        git(checkout, "merge", "-q", "one")
    conflicting = run("compare --dirty --dry-run", ada)
    assert conflicting.exit_code == 2 and "conflicts, such as in mm/new.c" in conflicting.output
    git(checkout, "reset", "-q", "--hard")
    (checkout / ".git/index").write_bytes(b"junk")
    damaged = run("compare --dry-run", ada)
    assert damaged.exit_code == 2 and "git status in" in damaged.output
    other = tmp_path / "sha256"
    git(tmp_path, "init", "-q", "--object-format=sha256", str(other))
    commit(other, "README", "x\n")
    monkeypatch.chdir(other)
    assert "by SHA-256" in run("compare --dry-run", ada).output
    (other / ".git/config").write_text("[core\n")
    assert f"git does not read {other}: " in run("compare base tip --dry-run", ada).stderr


def test_a_shallow_clone_without_a_known_commit_is_named(
    site: Site, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(checkout, "mm/new.c", "int x;\n")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{checkout}", "shallow")
    monkeypatch.chdir(tmp_path / "shallow")
    assert "git fetch --unshallow" in run("compare --dry-run", elsewhere(site, tmp_path)).output


def test_commits_that_are_too_large_for_a_request_name_the_limit(
    site: Site, checkout: Path, tmp_path: Path
) -> None:
    commit(checkout, "mm/new.h", os.urandom(4 << 20).hex())
    said = run("compare --dry-run", elsewhere(site, tmp_path))
    assert said.exit_code != 0 and "web.patch_kib" in said.output, said.output


def bundle_of(checkout: Path, *revisions: str) -> bytes:
    return git(checkout, "bundle", "create", "-q", "-", *revisions)


def refused(site: Site, ada: dict[str, str], bundle: bytes, sha: str) -> str:
    """Ask with this bundle, and return the sentence of the refusal; nothing is left of it."""
    before = state(site)
    answer = site.json(
        ada,
        head="HEAD",
        commits={"HEAD": sha},
        bundle=base64.b64encode(bundle).decode(),
    )
    assert answer.status_code in (400, 413), answer.text
    assert state(site) == before, "nothing is half-done"
    return str(answer.json()["detail"])


def test_bundles_that_are_cut_off_or_need_what_is_not_there_are_refused(
    site: Site, checkout: Path
) -> None:
    first = commit(checkout, "mm/new.c", "int x;\n")
    second = commit(checkout, "mm/new.c", "int y;\n")
    ada = site.web.token("Ada", Role.SUBMITTER)
    whole = bundle_of(checkout, f"{site.commits[-1]}..main")
    assert "cut off" in refused(site, ada, whole[:-30], second)
    assert "cut off" in refused(site, ada, whole[:60], second)
    assert "not a git bundle" in refused(site, ada, b"PK" + whole, second)
    assert "builds on commit" in refused(site, ada, bundle_of(checkout, f"{first}..main"), second)
    middle = bytearray(whole)
    middle[-60] ^= 1
    assert "checksum" in refused(site, ada, bytes(middle), second)
    large = site.web.settings.web.patch_kib << 10
    assert "web.patch_kib" in refused(site, ada, whole + bytes(large), second)
    lie = whole.replace(second.encode(), first[::-1].encode())
    assert "not all the commits" in refused(site, ada, lie, second)


def test_two_uploads_of_the_same_commits_at_once_make_one_table(site: Site, checkout: Path) -> None:
    sha = commit(checkout, "mm/new.c", "int x;\n")
    bundle = base64.b64encode(bundle_of(checkout, f"{site.commits[-1]}..main")).decode()
    people = [site.web.token(who, Role.SUBMITTER) for who in ("Ada", "Ada 2", "Bob")]
    keys = {"head": "HEAD", "commits": {"HEAD": sha}, "bundle": bundle}
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda who: site.json(who, **keys), people * 2))
    assert {answer.status_code for answer in answers} <= {200, 201}, [a.text for a in answers]
    assert {answer.json()["id"] for answer in answers} == {"c1"}
    assert mirror_of(site).sent() == {sha}


def test_a_token_that_is_revoked_in_mid_upload_leaves_nothing(site: Site, checkout: Path) -> None:
    sha = commit(checkout, "mm/new.c", "int x;\n")
    bundle = base64.b64encode(bundle_of(checkout, f"{site.commits[-1]}..main")).decode()
    headers, before = site.web.token("Ada", Role.SUBMITTER), state(site)
    body = json.dumps(
        {"tree": "fake", "base": "base", "head": "HEAD", "commits": {"HEAD": sha}, "bundle": bundle}
    ).encode()
    head = f"POST /compare HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n"
    head += f"Content-Type: application/json\r\nAuthorization: {headers['Authorization']}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", site.web.port)) as sent:
        sent.sendall(head.encode() + body[:100])
        writes = "SELECT count(*) FROM access_token WHERE who = 'Ada' AND used_at IS NOT NULL"
        while not _scalar(site, writes):
            pass
        _scalar(
            site,
            "UPDATE access_token SET revoked_at = now(), revoked_by = 'x' WHERE who = 'Ada'"
            " RETURNING 1",
        )
        sent.sendall(body[100:])
        answer = sent.recv(1 << 16).decode()
    assert answer.startswith("HTTP/1.1 401") and state(site) == before


def _scalar(site: Site, query: str) -> Any:
    with site.web.engine.begin() as conn:
        return conn.execute(sa.text(query)).scalar()
