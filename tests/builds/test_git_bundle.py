"""Bundles of commits that a person sends: what git packs is taken; what an attacker packs is
refused in one sentence, and leaves nothing in the mirror."""

from __future__ import annotations

import hashlib
import struct
import subprocess
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from swingbot.adapters import limits
from swingbot.adapters.git import Mirror
from swingbot.app.keep.backup import fetch_all
from swingbot.core.limits import BUNDLE_COMMITS, BUNDLE_OBJECTS
from swingbot.core.patchset.bundle import BadBundle, Bundle, read_bundle, written
from swingbot.service.ports import GitError
from tests.patch_series import Change, git, make_repo

ADA: Final = "ada-0123456789ab"
KINDS: Final = {"commit": 1, "tree": 2, "blob": 3, "tag": 4}
REF_DELTA: Final = 7
BASE: Final = Change(files={"mm/a.c": b"a\n", "init/main.c": b"x\n" * 500}, message="base")


@dataclass(frozen=True)
class World:
    mirror: Mirror
    base: str
    tree: str

    def take(self, bundle: Bundle) -> None:
        """What a request does that is queued."""
        with self.mirror.quarantine() as aside:
            aside.unbundle(read_bundle(written(bundle)), ADA)
            aside.admit()

    def files(self) -> list[Path]:
        return sorted(file for file in self.mirror.path.rglob("*") if "swingbot-" not in file.name)


@pytest.fixture
def world(tmp_path: Path) -> World:
    (base,) = make_repo(tmp_path / "repo.git", [BASE])
    mirror = Mirror(tmp_path / "mirror.git")
    mirror.fetch_branch("t", str(tmp_path / "repo.git"), "main")
    return World(mirror, base, git(mirror.path, "rev-parse", f"{base}^{{tree}}").decode().strip())


Entry = tuple[int, bytes, bytes]  # type, what follows its head, content


def sha_of(kind: str, content: bytes) -> str:
    return hashlib.sha1(f"{kind} {len(content)}\0".encode() + content).hexdigest()


def entry(kind: str, content: bytes) -> Entry:
    return KINDS[kind], b"", content


def packed(entries: Sequence[Entry], count: int | None = None) -> bytes:
    pack = struct.pack(">4sII", b"PACK", 2, len(entries) if count is None else count)
    for kind, more, content in entries:
        pack += _head(kind, len(content)) + more + zlib.compress(content, 9)
    return pack + hashlib.sha1(pack).digest()


def _head(kind: int, size: int) -> bytes:
    head, byte = b"", (kind << 4) | (size & 15)
    size >>= 4
    while size:
        head, byte, size = head + bytes([byte | 0x80]), size & 0x7F, size >> 7
    return head + bytes([byte])


def tree_of(*entries: tuple[str, str, str]) -> bytes:
    """mode, name, id"""
    return b"".join(f"{mode} {name}\0".encode() + bytes.fromhex(id) for mode, name, id in entries)


def commit_of(tree: str, *parents: str) -> bytes:
    who = "A <a@example.org> 1700000000 +0000"
    of = "".join(f"parent {parent}\n" for parent in parents)
    return f"tree {tree}\n{of}author {who}\ncommitter {who}\n\nx\n".encode()


def a_bundle(
    world: World, tree: bytes, *others: Entry, parents: Sequence[str] | None = None
) -> Bundle:
    """A commit with this top directory."""
    made = commit_of(sha_of("tree", tree), *([world.base] if parents is None else parents))
    pack = packed([*others, entry("tree", tree), entry("commit", made)])
    return Bundle(tips=(sha_of("commit", made),), prerequisites=(world.base,), pack=pack)


BLOB: Final = b"int x;\n"
X: Final = sha_of("blob", BLOB)
FILE: Final = ("100644", "x.c", X)


def nested(levels: int, copies: int) -> tuple[str, list[Entry]]:
    """Directories that have the same directory `copies` times, so many levels."""
    content = tree_of(FILE)
    entries = [entry("blob", BLOB), entry("tree", content)]
    for _ in range(levels):
        content = tree_of(*(("40000", f"d{n}", sha_of("tree", content)) for n in range(copies)))
        entries.append(entry("tree", content))
    return sha_of("tree", content), entries


def test_what_git_packs_is_taken_and_marked_as_sent(world: World) -> None:
    bundle = a_bundle(world, tree_of(FILE), entry("blob", BLOB))
    (tip,) = bundle.tips
    with world.mirror.quarantine() as aside:
        aside.unbundle(read_bundle(written(bundle)), ADA)
        assert aside.facts(tip).made_here and aside.is_sent_by(ADA, tip)
        assert not aside.is_sent_by("bob", tip)
    assert world.mirror.known([tip], ADA) == set(), "gone with its quarantine"
    world.take(bundle)
    world.take(bundle)
    facts = world.mirror.facts(tip)
    assert facts.made_here and len(facts.patches) == 1 and all(facts.patches)
    assert world.mirror.known([tip, world.base], ADA) == {tip, world.base}
    assert world.mirror.known([tip, world.base], "bob") == {world.base}
    assert world.mirror.sent() == {tip}
    world.mirror.forget(tip)
    assert world.mirror.remove_forgotten(lambda commit: False) == 3
    assert world.mirror.sent() == set() == world.mirror.known([tip], ADA)


@pytest.mark.parametrize("name", ["A", "A\u2028B", "A\x0c/", "A\x85" + 300 * "b"])
def test_no_name_hides_a_commit_of_a_series(name: str, world: World) -> None:
    one, two = tree_of(FILE), tree_of(FILE, ("100644", "y.c", X))
    first = commit_of(sha_of("tree", one), world.base)
    second = commit_of(sha_of("tree", two), sha_of("commit", first))
    second = second.replace(b"committer A ", f"committer {name} ".encode())
    entries = [entry("blob", BLOB), entry("tree", one), entry("tree", two)]
    tip = sha_of("commit", second)
    pack = packed([*entries, entry("commit", first), entry("commit", second)])
    world.take(Bundle(tips=(tip,), prerequisites=(world.base,), pack=pack))
    patches = world.mirror.facts(tip).patches
    assert len(patches) == 2 and all(patches)


def test_what_was_sent_is_untrusted_after_a_restore_too(world: World, tmp_path: Path) -> None:
    bundle = a_bundle(world, tree_of(FILE), entry("blob", BLOB))
    world.take(bundle)
    restored = Mirror(tmp_path / "restored.git")
    fetch_all(world.mirror.path, restored.path)
    restored.mark_again()
    assert restored.facts(bundle.tips[0]).made_here
    assert not restored.facts(world.base).made_here


def test_who_sends_what_the_mirror_has_does_not_make_it_untrusted(world: World) -> None:
    """As the tip of a branch before it was rebased."""
    bundle = a_bundle(world, tree_of(FILE), entry("blob", BLOB))
    (tip,) = bundle.tips
    git(world.mirror.path, "unpack-objects", "-q", stdin=bundle.pack)
    world.mirror.keep(tip)
    world.take(bundle)
    assert not world.mirror.facts(tip).made_here
    assert world.mirror.is_sent_by(ADA, tip)


def test_a_commit_of_somebody_else_is_taken_only_from_who_has_it(world: World) -> None:
    """Its id is on the page of a table, which all readers see."""
    bundle = a_bundle(world, tree_of(FILE), entry("blob", BLOB))
    (tip,) = bundle.tips
    world.take(bundle)
    mine = commit_of(world.tree, tip)
    on_it = entry("commit", mine)
    nothing = (
        Bundle(tips=(tip,), prerequisites=(), pack=packed([])),
        Bundle(tips=(sha_of("commit", mine),), prerequisites=(), pack=packed([on_it])),
    )
    for without in nothing:
        with (
            world.mirror.quarantine() as aside,
            pytest.raises(GitError, match="has not all the commits"),
        ):
            aside.unbundle(without, "bob")
        assert world.mirror.known([tip], "bob") == set()
    world.take(nothing[1])
    with world.mirror.quarantine() as aside:
        aside.unbundle(bundle, "bob")
        assert aside.is_sent_by("bob", tip)
        aside.admit()
    assert world.mirror.known([tip], "bob") == {tip}
    assert world.mirror.facts(tip).made_here


def test_a_commit_of_a_tree_that_a_bundle_names_is_not_kept_for_who_sent_it(world: World) -> None:
    """With the retention the names that the tree has for it would go."""
    world.mirror.call("t", "base", world.base)
    world.take(Bundle(tips=(world.base,), prerequisites=(), pack=packed([])))
    assert world.mirror.sent() == set()
    assert not world.mirror.is_sent_by(ADA, world.base)


def test_a_mark_stays_with_a_commit_that_was_packed_meanwhile(world: World) -> None:
    """As all are after a restore."""
    bundle = a_bundle(world, tree_of(FILE), entry("blob", BLOB))
    (tip,) = bundle.tips
    world.take(bundle)
    git(world.mirror.path, "repack", "-adq")
    world.mirror.forget(tip)
    assert world.mirror.remove_forgotten(lambda commit: False) == 0
    assert world.mirror.sent() == set()
    world.take(bundle)
    assert world.mirror.facts(tip).made_here


def test_a_tree_is_fetched_however_long_the_search_for_sent_commits_takes(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = a_bundle(world, tree_of(FILE), entry("blob", BLOB))
    (tip,) = bundle.tips
    world.take(bundle)
    monkeypatch.setattr(limits, "PLACES_SECONDS", 0.0)
    git(tmp_path / "repo.git", "fetch", "-q", str(world.mirror.path), f"{tip}:main")
    world.mirror.fetch_branch("t", str(tmp_path / "repo.git"), "main")
    assert not world.mirror.facts(tip).made_here


def a_delta(world: World, size: int) -> Entry:
    """A delta on a file of the mirror that copies it until it has `size` bytes."""
    main = git(world.mirror.path, "rev-parse", f"{world.base}:init/main.c").decode().strip()
    delta = _varint(1000) + _varint(size) + b"\x90\xfa" * (size // 250)  # 250 bytes from offset 0
    return REF_DELTA, bytes.fromhex(main), delta


def _varint(number: int) -> bytes:
    out = b""
    while number >= 0x80:
        out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
    return out + bytes([number])


def test_a_delta_on_a_file_that_the_mirror_has_is_taken(world: World) -> None:
    content = (b"x\n" * 125) * 8
    tree = tree_of(("100644", "x.c", sha_of("blob", content)))
    bundle = a_bundle(world, tree, a_delta(world, len(content)))
    world.take(bundle)
    assert git(world.mirror.path, "show", f"{bundle.tips[0]}:x.c") == content


def hostile(world: World) -> dict[str, tuple[Bundle, str]]:
    """name -> (bundle, what the refusal says)"""
    blob = entry("blob", BLOB)
    large = bytes(40 << 20)
    out = b"../../etc/passwd"
    deep, levels = nested(60, 1)
    bomb, bombs = nested(9, 10)
    root = commit_of(sha_of("tree", tree_of(FILE)))
    tag = b"object " + world.base.encode() + b"\ntype commit\ntag v1\ntagger A <a@b> 1 +0000\n\nx\n"
    bent = Bundle(
        tips=(sha_of("tag", tag),), prerequisites=(world.base,), pack=packed([entry("tag", tag)])
    )

    def of(*files: tuple[str, str, str], more: Sequence[Entry] = (blob,)) -> Bundle:
        return a_bundle(world, tree_of(*files), *more)

    return {
        ".git": (of(("40000", ".git", world.tree)), "contains '.git'"),
        ".GIT": (of(("100644", ".GIT", X)), "contains '.git'"),
        "..": (of(("40000", "..", world.tree)), "contains '..'"),
        "slash": (of(("100644", "a/b", X)), "full pathnames"),
        "unsorted": (of(("100644", "z", X), ("100644", "a", X)), "not properly sorted"),
        "submodule": (of(("160000", "sub", world.base), more=()), "would be a submodule"),
        "link": (
            of(("120000", "l", sha_of("blob", out)), more=[entry("blob", out)]),
            "leads out of the tree",
        ),
        "large file": (
            of(("100644", "x", sha_of("blob", large)), more=[entry("blob", large)]),
            "would exceed 32 MiB",
        ),
        "deep": (of(("40000", "d", deep), more=levels), "levels deep"),
        "tree bomb": (of(("40000", "d", bomb), more=bombs), "needs too much processor time"),
        "delta bomb": (
            of(
                ("100644", "x", X),
                more=[blob, (REF_DELTA, bytes.fromhex(X), _varint(7) + _varint(3 << 30) + b"\x01")],
            ),
            "MiB of memory",
        ),
        "missing file": (of(FILE, more=()), "object"),
        "unneeded": (of(FILE, more=[blob, entry("blob", b"mine\n")]), "belong to none of its"),
        "no parent": (
            Bundle(
                tips=(sha_of("commit", root),),
                prerequisites=(world.base,),
                pack=packed([blob, entry("tree", tree_of(FILE)), entry("commit", root)]),
            ),
            "has no parent",
        ),
        "a tag": (bent, "not all the commits"),
        "fewer objects": (
            Bundle(tips=(world.base,), prerequisites=(), pack=packed([blob], count=2)),
            "refused",
        ),
        "more objects": (
            Bundle(tips=(world.base,), prerequisites=(), pack=packed([blob, blob], count=1)),
            "refused",
        ),
        "many commits": (_many(world), f"more than {BUNDLE_COMMITS} commits"),
        "elsewhere": (
            Bundle(tips=("1" * 40,), prerequisites=("2" * 40,), pack=packed([])),
            "builds on commit 222222222222",
        ),
    }


def _many(world: World) -> Bundle:
    entries, parent = [], world.base
    for _ in range(BUNDLE_COMMITS + 1):
        made = commit_of(world.tree, parent)
        entries.append(entry("commit", made))
        parent = sha_of("commit", made)
    return Bundle(tips=(parent,), prerequisites=(world.base,), pack=packed(entries))


HOSTILE: Final = (
    *(".git", ".GIT", "..", "slash", "unsorted", "submodule", "link", "large file", "deep"),
    *("tree bomb", "delta bomb", "missing file", "unneeded", "no parent", "a tag"),
    *("fewer objects", "more objects", "many commits", "elsewhere"),
)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_bundle_is_refused_and_leaves_nothing(name: str, world: World) -> None:
    bundle, said = hostile(world)[name]
    before = world.files()
    with pytest.raises(GitError) as refused:
        world.take(bundle)
    assert said in str(refused.value) and "\n" not in str(refused.value)
    assert world.files() == before


def test_all_hostile_bundles_are_tried(world: World) -> None:
    assert set(hostile(world)) == set(HOSTILE)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not a git bundle"),
        (b"# v3 git bundle\n@object-format=sha256\n\nPACK", "not a git bundle of version 2"),
        (b"# v2 git bundle\n", "cut off"),
        (b"# v2 git bundle\n" + b"-" + b"1" * 40 + b"\n\n", "malformed"),
        (b"# v2 git bundle\nHEAD\n\n", "malformed"),
        (b"# v2 git bundle\n" + b"1" * 40 + b" a\n-" + b"2" * 40 + b"\n\n", "malformed"),
        (b"# v2 git bundle\n" + b"1" * 40 + b" a\n\n", "has no pack"),
        (b"# v2 git bundle\n" + b"1" * 40 + b" a\n\n" + b"JUNK" * 20, "no pack of version 2"),
        (b"# v2 git bundle\n" + b"%040x refs/x\n" % 1 * 2000 + b"\n" + packed([]), "64 KiB"),
        (
            b"# v2 git bundle\n" + b"1" * 40 + b" a\n\n" + packed([], count=BUNDLE_OBJECTS + 1),
            f"at most {BUNDLE_OBJECTS}",
        ),
        (b"# v2 git bundle\n" + b"1" * 40 + b" a\n\n" + packed([])[:-1] + b"\0", "checksum"),
    ],
)
def test_what_is_no_bundle_is_refused_by_its_frame(data: bytes, said: str) -> None:
    with pytest.raises(BadBundle) as refused:
        read_bundle(data)
    assert said in str(refused.value)


def test_git_reads_what_is_written(world: World, tmp_path: Path) -> None:
    file = tmp_path / "x.bundle"
    file.write_bytes(written(a_bundle(world, tree_of(FILE), entry("blob", BLOB))))
    subprocess.run(
        ["git", "-C", str(world.mirror.path), "bundle", "verify", "-q", str(file)], check=True
    )
