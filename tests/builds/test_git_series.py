"""A patch series in the mirror: a commit for each patch, as `git am` makes it; none is hostile."""

from __future__ import annotations

import base64
import fcntl
import os
import re
import subprocess
import tempfile
import threading
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swingbot.adapters import git_limits, limits
from swingbot.adapters.git import Mirror, TooMuchWork
from swingbot.adapters.patch_ids import patch_ids
from swingbot.adapters.quarantine import quarantine
from swingbot.core.patchset.model import SeriesPatch
from swingbot.core.patchset.read import read_file
from swingbot.service.ports import GitError
from tests.amount import examples
from tests.git_shim import git_shim
from tests.patch_series import ENVIRONMENT, Change, git, mailbox, make_repo

BASE = Change(files={"mm/a.c": b"a\nb\nc\n", "dos": b"x\r\ny\r\n", "link": b""}, message="base")
TRAILERS = 'Fixes: 0123456789ab ("mm: x")\nSigned-off-by: Ada <ada@example.org>\n'
CHANGES = [
    Change(
        files={"mm/a.c": b"a\nB\nc\n- \n"}, message=f"mm: größe\n\nWhy.\n\n- a list\n\n{TRAILERS}"
    ),
    Change(
        files={"dos": b"x\r\nz\r\n", "new": b"\xe4\n"},
        message="dos: a subject that format-patch has to fold " + "because it is long " * 5,
        author="Жанна Д'Арк <zh@example.org>",
        date="1600000000 -0730",
    ),
    Change(files={"mm/a.c": None, "mm/b.c": b"a\nB\nc\n- \n"}, message="mm: rename"),
]


def mirror_of(repo: Path, place: Path) -> Mirror:
    mirror = Mirror(place / "mirror.git")
    mirror.fetch_branch("t", str(repo), "main")
    return mirror


@pytest.fixture
def world(tmp_path: Path) -> tuple[Path, list[str], Mirror]:
    commits = make_repo(tmp_path / "repo.git", [BASE, *CHANGES])
    return tmp_path / "repo.git", commits, mirror_of(tmp_path / "repo.git", tmp_path)


def described(repo: Path, commit: str) -> str:
    return git(repo, "show", "-s", "--format=%T%n%an%n%ae%n%ad%n%B", "--date=raw", commit).decode()


def refs(mirror: Mirror) -> bytes:
    return git(mirror.path, "for-each-ref")


def a_patch(diff: str, number: int = 1) -> SeriesPatch:
    return replace(read_file("x", b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n").patches[0],
                   number=number, diff=diff.encode())  # fmt: skip


def by_git_am(repo: Path, testbox: bytes, base: str, place: Path) -> list[str]:
    """What git itself makes of a mailbox."""
    subprocess.run(["git", "clone", "-q", repo, place], check=True, env=ENVIRONMENT)
    git(place, "checkout", "-q", "--detach", base)
    git(place, "am", "-q", "--keep-cr", "--keep-non-patch", "--message-id", stdin=testbox)
    return git(place, "rev-list", "--reverse", f"{base}..HEAD").decode().split()


@pytest.mark.parametrize("options", [(), ("--attach",), ("--thread", "--cover-letter")])
def test_the_commits_are_those_of_git_am(
    world: tuple[Path, list[str], Mirror], tmp_path: Path, options: tuple[str, ...]
) -> None:
    repo, commits, mirror = world
    testbox = mailbox(repo, 3, *options)
    without_cover = (
        testbox[testbox.index(b"\nFrom ") + 1 :] if "--cover-letter" in options else testbox
    )
    expected = by_git_am(repo, without_cover, commits[0], tmp_path / "am")
    made = mirror.apply_series(commits[0], read_file("s.mbx", testbox).patches)
    assert [described(mirror.path, commit) for commit in made] == [
        described(tmp_path / "am", commit).replace("Message-Id:", "Message-ID:")
        for commit in expected
    ]
    assert mirror.first_parents(commits[0], made[-1]) == made
    assert mirror.facts(made[0]).made_here
    ids = tuple(patch_ids([one.diff for one in read_file("s.mbx", testbox).patches]))
    assert mirror.facts(made[-1]).patches == ids and all(ids)
    assert mirror.facts(made[0]).patches == ids[:1] and mirror.facts(commits[0]).patches == ()


def test_the_same_series_on_the_same_base_gives_the_same_commits(
    world: tuple[Path, list[str], Mirror], tmp_path: Path
) -> None:
    repo, commits, mirror = world
    patches = read_file("s.mbx", mailbox(repo, 3, "--attach")).patches
    other = mirror_of(repo, tmp_path / "other")
    assert mirror.apply_series(commits[0], patches) == other.apply_series(commits[0], patches)
    inline = read_file("s.mbx", mailbox(repo, 3, "--inline")).patches
    assert mirror.apply_series(commits[0], inline) == mirror.apply_series(commits[0], patches)
    kept = git(mirror.path, "for-each-ref", "--format=%(refname)", "refs/swingbot/keep").decode()
    assert mirror.apply_series(commits[0], patches)[-1] in kept


def test_a_patch_that_does_not_apply_is_named_and_nothing_is_referenced(
    world: tuple[Path, list[str], Mirror],
) -> None:
    repo, commits, mirror = world
    patches = read_file("s.mbx", mailbox(repo, 3)).patches
    before = refs(mirror)
    with pytest.raises(GitError) as refused:
        mirror.apply_series(commits[0], [*patches[:2], replace(patches[0], number=3)])
    parent = re.search(r"on ([0-9a-f]{12}): ", str(refused.value))
    assert str(refused.value).startswith("patch 3/3 (mm: größe) does not apply on ")
    assert parent and parent[1] != commits[0][:12] and "\n" not in str(refused.value)
    assert refs(mirror) == before


@pytest.mark.parametrize(
    ("diff", "why"),
    [
        (
            b"--- a/mm/a.c\n+++ b/mm/a.c\n@@ -1,3 +1,3 @@\n a\r\n-b\r\n+B\r\n c\r\n",
            "lines of the patch end in CRLF, but those of the file in LF",
        ),
        (
            b"--- a/dos\n+++ b/dos\n@@ -1,2 +1,2 @@\n x\n-y\n+z\n",
            "the file has CRLF line ends, or the mailer changed white space",
        ),
    ],
)
def test_a_patch_that_fails_by_its_line_ends_is_refused_with_that_reason(
    world: tuple[Path, list[str], Mirror], diff: bytes, why: str
) -> None:
    _, commits, mirror = world
    patch = replace(a_patch(""), diff=diff)
    with pytest.raises(GitError, match=f"does not apply on {commits[0][:12]}: .*; .*{why}"):
        mirror.apply_series(commits[0], [patch])


def test_a_patch_that_fails_for_another_reason_says_nothing_of_line_ends(
    world: tuple[Path, list[str], Mirror],
) -> None:
    _, commits, mirror = world
    for cr in (b"", b"\r"):
        diff = b"--- a/mm/a.c\n+++ b/mm/a.c\n@@ -1 +1 @@\n-other%s\n+B%s\n" % (cr, cr)
        with pytest.raises(GitError, match="does not apply on") as refused:
            mirror.apply_series(commits[0], [replace(a_patch(""), diff=diff)])
        assert "CRLF" not in str(refused.value)


NEW = "diff --git a/{0} b/{0}\nnew file mode {1}\n--- /dev/null\n+++ b/{0}\n@@ -0,0 +1 @@\n+{2}\n"
NO_END = "\\ No newline at end of file\n"


@pytest.mark.parametrize(
    ("diff", "sentence"),
    [
        (NEW.format("../out", "100644", "x"), "does not apply"),
        (NEW.format("/etc/x", "100644", "x"), "does not apply"),
        (NEW.format("mm/../../x", "100644", "x"), "does not apply"),
        (NEW.format(".git/hooks/post-checkout", "100755", "x"), "does not apply"),
        (NEW.format("mm/.GIT/config", "100644", "x"), "does not apply"),
        (NEW.format("git~1/config", "100644", "x"), "does not apply"),
        (NEW.format("l", "120000", "../x") + NO_END, "l would be a symbolic link that leads out"),
        (NEW.format("mm/l", "120000", "../../x") + NO_END, "leads out of the tree"),
        (NEW.format("l", "120000", "mm/../../x") + NO_END, "leads out of the tree"),
        (NEW.format("l", "120000", "/etc/passwd") + NO_END, "leads out of the tree"),
        (NEW.format("l", "120000", "a/" * 2048) + NO_END, "leads out of the tree"),
        (NEW.format("l", "160000", "Subproject commit " + "a" * 40), "l would be a submodule"),
        (
            NEW.format("l", "120000", "mm") + NO_END + NEW.format("l/x", "100644", "x"),
            "does not apply",
        ),
        (NEW.format(".gitmodules", "120000", "mm") + NO_END, "does not apply"),
    ],
)
@pytest.mark.parametrize("number", [1, 2])
def test_a_hostile_patch_is_refused_wherever_it_is_in_the_series(
    world: tuple[Path, list[str], Mirror], diff: str, sentence: str, number: int
) -> None:
    _, commits, mirror = world
    good = a_patch(NEW.format("good", "100644", "x"))
    before = refs(mirror)
    with pytest.raises(GitError, match=sentence):
        mirror.apply_series(
            commits[0], [good, a_patch(diff, 2)] if number == 2 else [a_patch(diff)]
        )
    assert refs(mirror) == before


def test_a_link_within_the_tree_and_a_mode_are_applied(
    world: tuple[Path, list[str], Mirror],
) -> None:
    _, commits, mirror = world
    link = NEW.format("mm/l", "120000", "../dos") + NO_END
    mode = "diff --git a/dos b/dos\nold mode 100644\nnew mode 100755\n"
    (made,) = mirror.apply_series(commits[0], [a_patch(link + mode)])
    listing = git(mirror.path, "ls-tree", "-r", made).decode()
    assert re.search(r"^120000 .*\tmm/l$", listing, re.M)
    assert re.search(r"^100755 .*\tdos$", listing, re.M)


def test_files_have_a_size(
    world: tuple[Path, list[str], Mirror], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, commits, mirror = world
    copies = "".join(
        f"diff --git a/mm/a.c b/{n}\nsimilarity index 100%\ncopy from mm/a.c\ncopy to {n}\n"
        for n in range(20)
    )
    assert mirror.apply_series(commits[0], [a_patch(copies)])
    monkeypatch.setattr(limits, "TOUCHED_BYTES", len(copies) + 20 * len(b"a\nb\nc\n") - 1)
    with pytest.raises(GitError, match=r"patch 1/1 .* is refused: the files that it changes, cop"):
        mirror.apply_series(commits[0], [a_patch(copies)])
    monkeypatch.setattr(limits, "TOUCHED_BYTES", 1 << 20)
    monkeypatch.setattr(limits, "SERIES_TOUCHED_BYTES", 2 * len(copies))
    with pytest.raises(GitError, match=r"patch 2/2 .* is refused: with it, the files that the ser"):
        mirror.apply_series(commits[0], [a_patch(copies), a_patch(chained(100), 2)])
    monkeypatch.setattr(limits, "PATCHED_FILE_BYTES", 10)
    with pytest.raises(GitError, match="good would exceed"):
        mirror.apply_series(commits[0], [a_patch(NEW.format("good", "100644", "x" * 10))])


def chained(count: int) -> str:
    """A patch whose files are copies of each other, each with a name that git quotes."""
    names = ["mm/a.c", *(f'"\\303\\{200 + n % 64:o}{n}"' for n in range(count))]
    return "".join(
        f"diff --git a/x b/y\nsimilarity index 100%\ncopy from {old}\ncopy to {new}\n"
        for old, new in pairwise(names)
    )


def files(mirror: Mirror) -> set[Path]:
    return set((mirror.path / "objects").rglob("*"))


def test_what_a_refused_series_made_is_gone_and_refs_are_those_before(
    world: tuple[Path, list[str], Mirror],
) -> None:
    _, commits, mirror = world
    good = a_patch(NEW.format("good", "100644", "x"))
    before = files(mirror), refs(mirror)
    with pytest.raises(GitError, match="patch 2/2"):
        mirror.apply_series(commits[0], [good, a_patch(NEW.format("../out", "100644", "x"), 2)])
    with mirror.quarantine() as aside:
        (made,) = aside.apply_series(commits[0], [good])
        assert aside.facts(made).parents == (commits[0],)
        with pytest.raises(GitError):
            mirror.facts(made)
    assert (files(mirror), refs(mirror)) == before
    with mirror.quarantine() as aside:
        assert aside.apply_series(commits[0], [good]) == [made]
        aside.admit()
    assert mirror.facts(made).parents == (commits[0],)
    assert made.encode() in refs(mirror)
    assert git(mirror.path, "fsck", "--strict", "--no-dangling") == b""


def test_what_a_process_that_died_left_is_removed_but_not_what_one_at_work_has(
    world: tuple[Path, list[str], Mirror],
) -> None:
    _, commits, mirror = world
    dead = mirror.path / "objects" / "tmp_objdir-swingbot-dead"
    (dead / "ab").mkdir(parents=True)
    (dead / "ab" / "cdef").write_text("x")
    with mirror.quarantine() as aside:
        (made,) = aside.apply_series(commits[0], [a_patch(NEW.format("good", "100644", "x"))])
        for directory in (mirror.path / "objects").glob("tmp_objdir-*"):
            os.utime(directory, (0, 0))
        with mirror.quarantine():
            assert not dead.exists()
        assert aside.facts(made)


def test_a_quarantine_that_another_request_looks_at_is_locked_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[threading.Timer] = []

    class Watched(tempfile.TemporaryDirectory[str]):
        """Another request has it locked from its creation on, for half a second."""

        def __init__(self, **given: Any) -> None:
            super().__init__(**given)
            descriptor = os.open(self.name, os.O_RDONLY)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            looks.append(threading.Timer(0.5, os.close, [descriptor]))
            looks[0].start()

    monkeypatch.setattr(tempfile, "TemporaryDirectory", Watched)
    with quarantine(tmp_path) as aside:
        looks[0].join()
        descriptor = os.open(aside.path, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(descriptor)


def test_git_stops_at_each_of_its_limits(
    world: tuple[Path, list[str], Mirror], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, commits, mirror = world
    random = Random(1)
    text = "".join(f"+{random.getrandbits(64):x}\n" for _ in range(400_000))
    large = a_patch(
        f"diff --git a/large b/large\nnew file mode 100644\n--- /dev/null\n+++ b/large\n"
        f"@@ -0,0 +1,400000 @@\n{text}"
    )
    before = files(mirror)
    for limit, most, reason in (
        ("memory_bytes", 8 << 20, "needs more than 8 MiB of memory"),
        ("file_bytes", 1 << 20, "writes more than 1 MiB"),
    ):
        within = replace(git_limits.PATCHING, **{limit: most})
        with monkeypatch.context() as patched:
            patched.setattr(git_limits, "PATCHING", within)
            with pytest.raises(GitError, match=reason):
                mirror.apply_series(commits[0], [large])
    assert files(mirror) == before
    assert mirror.apply_series(commits[0], [large])


@pytest.mark.parametrize("held_up", [True, False])
def test_only_a_patch_that_needs_too_much_processor_time_is_too_much_work_for_good(
    world: tuple[Path, list[str], Mirror],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    held_up: bool,
) -> None:
    _, commits, mirror = world
    slow = "sleep 600" if held_up else "while :; do :; done"
    with monkeypatch.context() as patched:
        git_shim(tmp_path, patched, f'case "$*" in *format-patch*) {slow} ;; esac')
        seconds = 0.1 if held_up else 1.0
        patched.setattr(limits, "PATCH_SECONDS", seconds)
        within = replace(git_limits.WRITING_A_PATCH, seconds=seconds)
        patched.setattr(git_limits, "WRITING_A_PATCH", within)
        patience = 4.0 if held_up else 600.0
        patched.setattr("swingbot.adapters.git.PATIENCE", patience)
        why = "takes too long" if held_up else "needs too much processor time"
        with pytest.raises(GitError, match=f"git format-patch: it {why}"):
            mirror.patch(commits[1])
    if held_up:
        assert b"diff --git" in mirror.patch(commits[1])
        return
    with pytest.raises(TooMuchWork, match="too much processor time"):
        mirror.patch(commits[1])


def test_a_fetch_that_is_ended_names_the_limit_that_ended_it(
    world: tuple[Path, list[str], Mirror], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = world[0]
    kill = "echo 'fatal: fetch-pack: invalid index-pack output' >&2; exit 128"
    git_shim(tmp_path, monkeypatch, f'case "$*" in *" fetch "*) {kill} ;; esac')
    with pytest.raises(GitError, match="60 minutes of processor time or 4096 MiB of memory"):
        mirror_of(repo, tmp_path / "other")


def test_out_of_memory_the_host_ends_git_before_its_database(
    world: tuple[Path, list[str], Mirror], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, commits, mirror = world
    scores = tmp_path / "scores"
    git_shim(tmp_path, monkeypatch, f"cat /proc/self/oom_score_adj >>'{scores}'")
    mirror.apply_series(commits[0], [a_patch(NEW.format("good", "100644", "x"))])
    assert set(scores.read_text().split()) == {"1000"}


LINE = st.sampled_from(
    [b"", b"a", b"b", b"- ", b"-- ", b"+", b"diff --git a/x b/x", b"@@ -1 +1 @@", b"--- a/x", b"+++ b/x",
     b"From a Thu Jan  1 00:00:00 1970", b"GIT binary patch", b"\\ No newline", b"x\r", b"\r", b"\xe4\xff",
     b"Subject: x", b"--b", b"=3D=", b"\x0c", b"-- >8 --", b"2.39.5", b"\t ", "ö".encode()]
)  # fmt: skip
FILE = st.none() | st.builds(
    lambda lines, end: b"\n".join(lines) + end,
    st.lists(LINE, max_size=12),
    st.sampled_from([b"", b"\n"]),
)
WORDS = st.text(alphabet="abö é.:()-'\"<>[]/=?_", max_size=90).map(lambda words: f"x{words}")
NAMES = st.sampled_from(["f", "mm/g.c", "a b", "ü", "b/b"])
OPTIONS = st.sampled_from(
    [(), ("--attach",), ("--inline",), ("--encode-email-headers", "--thread"), ("--full-index", "-U1"),
     ("--no-signature", "--no-stat"), ("-M", "-C", "--cover-letter"), ("--no-renames", "--patience")]
)  # fmt: skip


@settings(max_examples=examples(25))
@given(
    st.lists(st.tuples(st.dictionaries(NAMES, FILE, max_size=3), WORDS), min_size=1, max_size=5),
    OPTIONS,
    st.sampled_from(["", "crlf", "base64"]),
)
def test_a_history_that_is_mailed_read_and_applied_has_the_trees_it_had(
    tmp_path_factory: pytest.TempPathFactory,
    history: list[tuple[dict[str, bytes | None], str]],
    options: tuple[str, ...],
    transport: str,
) -> None:
    place = tmp_path_factory.mktemp("history")
    changes = [
        Change(files={**files, "count": b"%d\n" % number}, message=words)
        for number, (files, words) in enumerate(history)
    ]
    commits = make_repo(place / "repo.git", [BASE, *changes])
    testbox = mailbox(place / "repo.git", len(changes), *options)
    mirror = mirror_of(place / "repo.git", place)
    patches = read_file("s.mbx", sent(testbox, transport)).patches
    made = mirror.apply_series(commits[0], patches)
    trees = [[mirror.facts(commit).tree_hash for commit in side] for side in (made, commits[1:])]
    assert trees[0] == trees[1]
    wanted = [" ".join(mirror.facts(commit).subject.split()) for commit in commits[1:]]
    assert [patch.subject for patch in patches] == wanted
    assert all(mirror.is_ancestor(old, new) for old, new in pairwise([commits[0], *made]))


def sent(testbox: bytes, transport: str) -> bytes:
    """The mailbox as mailers deliver it: with CRLF, or each mail as an attachment in base64."""
    if transport == "crlf":
        return testbox.replace(b"\n", b"\r\n")
    if transport == "base64":
        text = base64.encodebytes(testbox).decode()
        return (
            "Subject: please test\nMIME-Version: 1.0\nContent-Type: multipart/mixed; "
            "boundary=zzz\n\n--zzz\n\n"
            "Hi\n--zzz\nContent-Type: text/x-patch\nContent-Disposition: attachment; "
            'filename="s.mbox"\n'
            f"Content-Transfer-Encoding: base64\n\n{text}--zzz--\n"
        ).encode()
    return testbox
