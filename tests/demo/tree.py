"""The kernel repository of the demo: Debian's source as one commit, and a series of small commits
on top.

`make_base` imports the source once (kept in the shared cache, named by what is in it),
`make_series` writes a branch with a culprit in a place that a seed picks.
Both only use git plumbing: nothing is checked out, and equal arguments give equal commit ids on
every machine with the same source package.

By hand: python -m tests.demo.tree --repo /tmp/linux.git --seed 3 --json
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import functools
import hashlib
import json
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.demo import process

HERE = Path(__file__).resolve().parent
TARBALL = Path("/usr/src/linux-source-6.1.tar.xz")

# A change in how the source becomes a commit: raise this, and no kept repository is used again.
IMPORT_FORMAT = 1
SOURCE_REF = "refs/heads/debian"
# The first commit is of this second, each later one a minute after its parent.
# Fixed, so that ids are reproducible.
FIRST_SECOND = 1767268800
# What our patches may change; nothing else is ever looked at.
TOUCHED = ("mm", "include/linux/mm.h")
AUTHOR = "Demo Author"
MAIL = "author@demo.invalid"

Progress = Callable[[str], None]


class TreeError(Exception):
    """The tree or the series cannot be made; one sentence for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One commit of a series. `role` is known here and nowhere in the repository."""

    sha: str
    subject: str
    role: str
    patch: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A branch of the demo, base to tip in the order of history."""

    base: str
    tip: str
    branch: str
    seed: int
    plant: str
    commits: tuple[Commit, ...]
    culprit: str | None
    position: int | None  # of the culprit, the first commit is 1
    improvement: str | None
    metric: str | None  # the one that the plant makes worse
    test: str | None  # of the program behind `metric`, where it has several
    effect_pct: Mapping[str, float]  # of the plant, as measured, by job
    dropped: tuple[str, ...] = ()  # patches that do not fit this tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What a series is to be made of.

    Positions count from 1; a broken commit is mended by the next one.
    """

    seed: int
    plant: str
    count: int = 20
    unbuildable: int | None = None
    unbootable: int | None = None
    hanging: int | None = None
    header: int | None = None

    def branch(self) -> str:
        """A name of its own for each recipe: two never write the same branch."""
        extras = [f"-{word}{value}" for word, value in self.extras().items() if value is not None]
        return (
            f"demo-{self.seed}-{self.plant}"
            + (f"-n{self.count}" if self.count != 20 else "")
            + "".join(extras)
        )

    def extras(self) -> dict[str, int | None]:
        return {
            "unbuildable": self.unbuildable,
            "unbootable": self.unbootable,
            "hanging": self.hanging,
            "header": self.header,
        }


@functools.cache
def catalogue() -> dict[str, Any]:
    """plants.yaml: what each patch is."""
    loaded = yaml.safe_load((HERE / "plants.yaml").read_text())
    assert isinstance(loaded, dict)
    return loaded


# ---------------------------------------------------------------------------- git


@dataclass(frozen=True, slots=True)
class Repository:
    """Plumbing on one repository; `index` is a file of our own, the repository's is left alone."""

    path: Path
    index: Path | None = None
    extra: Mapping[str, str] = field(default_factory=dict)

    def _argv(self, words: Sequence[str | Path]) -> list[str | Path]:
        return ["git", "-c", f"safe.directory={self.path}", "-C", self.path, *words]

    def _env(self, second: int | None = None) -> dict[str, str]:
        extra = dict(self.extra)
        if self.index is not None:
            extra["GIT_INDEX_FILE"] = str(self.index)
        if second is not None:
            for who in ("AUTHOR", "COMMITTER"):
                extra |= {
                    f"GIT_{who}_NAME": AUTHOR,
                    f"GIT_{who}_EMAIL": MAIL,
                    f"GIT_{who}_DATE": f"{second} +0000",
                }
        return process.git_environment(extra)

    def run(self, *words: str | Path, stdin: bytes | None = None, second: int | None = None) -> str:
        return process.run(self._argv(words), stdin=stdin, env=self._env(second)).strip()

    def attempt(self, *words: str | Path, stdin: bytes | None = None) -> tuple[int, str]:
        status, _, err = process.attempt(self._argv(words), stdin=stdin, env=self._env())
        return status, err.strip()

    def commit_id(self, ref: str) -> str | None:
        status, out, _ = process.attempt(
            self._argv(["rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}"]), env=self._env()
        )
        return out.strip() if status == 0 else None

    def commit(self, parent: str, message: str) -> str:
        """Commit what the index has of TOUCHED on `parent`.

        A minute after it, or at the first second if the parent is not ours.
        """
        second = max(int(self.run("show", "-s", "--format=%ct", parent)) + 60, FIRST_SECOND)
        part = self.run("write-tree")
        whole = self.run("rev-parse", f"{parent}^{{tree}}")
        for path in TOUCHED:
            whole = self._grafted(whole, path.split("/"), self.run("rev-parse", f"{part}:{path}"))
        return self.run("commit-tree", whole, "-p", parent, stdin=message.encode(), second=second)

    def _grafted(self, tree: str, path: Sequence[str], replacement: str) -> str:
        """`tree` with what is at `path` replaced.

        The replacement has the kind and mode of what was there.
        """
        entries = self.run("ls-tree", tree).splitlines()
        for at, entry in enumerate(entries):
            facts, _, name = entry.partition("\t")
            if name == path[0]:
                mode, kind, old = facts.split()
                new = self._grafted(old, path[1:], replacement) if path[1:] else replacement
                if new == old:
                    return tree
                entries[at] = f"{mode} {kind} {new}\t{name}"
        return self.run("mktree", stdin=("\n".join(entries) + "\n").encode())


@contextlib.contextmanager
def with_index(repo: Path, commit: str) -> Iterator[Repository]:
    """The repository with a temporary index that holds TOUCHED as of `commit`:
    a few hundred files, so every step takes milliseconds.
    """
    with tempfile.TemporaryDirectory(prefix="swingbot-demo-") as folder:
        git = Repository(repo, Path(folder) / "index")
        git.run(
            "update-index",
            "--index-info",
            stdin=(git.run("ls-tree", "-r", commit, "--", *TOUCHED) + "\n").encode(),
        )
        yield git


# ---------------------------------------------------------------------------- the source


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _members(tarball: Path) -> Iterator[tuple[str, str, bytes]]:
    """Path, git mode and contents of each file and link of a source tarball,
    its top folder taken away.
    """
    with (
        process.Pipe(["xz", "-dc", "-T0", tarball], feed=False) as xz,
        tarfile.open(fileobj=xz.stream, mode="r|") as tar,
    ):
        for member in tar:
            _, _, name = member.name.partition("/")
            if member.issym():
                yield name, "120000", member.linkname.encode()
            elif member.isfile():
                file = tar.extractfile(member)
                assert file is not None
                yield name, "100755" if member.mode & 0o100 else "100644", file.read()


def import_source(tarball: Path, repo: Path, progress: Progress, only: Sequence[str] = ()) -> str:
    """Make the bare repository `repo` whose branch `debian` is the source in `tarball`.

    About half a minute.

    The files stream from xz through git fast-import into one pack: no tree of 80 000 files is ever
    written, and neither .gitignore (Debian's ignores everything) nor an index is asked.
    `only`: just the files in these folders.
    """
    process.run(["git", "init", "--bare", "--quiet", repo], env=process.git_environment())
    git = Repository(repo)
    package, digest = tarball.name.removesuffix(".tar.xz"), sha256_of(tarball)
    message = f"Linux as in Debian's {package}\n\nSHA-256 of the tarball: {digest}\n".encode()
    who = f"{AUTHOR} <{MAIL}> {FIRST_SECOND - 60} +0000"
    # Compressing harder takes longer than it saves; deltas between unrelated files would take
    # minutes.
    importer = [
        *git._argv(
            [
                "-c",
                "core.compression=1",
                "-c",
                "pack.compression=1",
                "-c",
                "fastimport.unpackLimit=0",
                "fast-import",
                "--quiet",
                "--depth=0",
            ]
        )
    ]
    with process.Pipe(importer, feed=True, env=process.git_environment()) as pipe:
        write = pipe.stream.write
        write(
            f"commit {SOURCE_REF}\nauthor {who}\ncommitter {who}\ndata {len(message)}\n".encode()
            + message
            + b"\n"
        )
        for count, (name, mode, data) in enumerate(_members(tarball), start=1):
            if only and not name.startswith(tuple(only)):
                continue
            quoted = '"' + name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
            write(f"M {mode} inline {quoted}\ndata {len(data)}\n".encode() + data + b"\n")
            if count % 10000 == 0:
                progress(f"importing the kernel source: {count} files")
        write(b"done\n")
    commit = git.commit_id(SOURCE_REF)
    if commit is None:
        raise TreeError(f"git imported {tarball} but there is no commit: is the disk full?")
    git.run("symbolic-ref", "HEAD", SOURCE_REF)
    return commit


def kept_import(tarball: Path, cache: Path, progress: Progress, only: Sequence[str] = ()) -> Path:
    """The imported source in the shared cache, made if it is not there.

    It is named by the tarball's contents and our import format, so that a stale one is never found;
    it appears by a rename, so that a half-made one is never found.
    """
    try:
        key = hashlib.sha256(
            f"{IMPORT_FORMAT} {sha256_of(tarball)} {' '.join(only)}".encode()
        ).hexdigest()[:24]
    except FileNotFoundError:
        raise TreeError(
            f"{tarball} is not there: install the Debian package linux-source-6.1,"
            " or give TREE=<git url or path> BASE=<ref>"
        ) from None
    folder = cache / "demo-tree"
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / f"{key}.git"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if kept.is_dir() and Repository(kept).commit_id(SOURCE_REF):
            progress("kernel source: kept from an earlier run")
            return kept
        shutil.rmtree(kept, ignore_errors=True)
        for left in folder.glob("import-*"):
            shutil.rmtree(left, ignore_errors=True)
        half = Path(tempfile.mkdtemp(prefix="import-", dir=folder))
        progress(f"importing {tarball} into git (about half a minute)")
        import_source(tarball, half / "repo", progress, only)
        (half / "repo").rename(kept)
        shutil.rmtree(half, ignore_errors=True)
    return kept


def make_base(
    repo: Path, cache: Path, progress: Progress = print, *, tarball: Path = TARBALL
) -> str:
    """Put Debian's source into `repo` (made bare if it is not there), answer the base commit of the
    demo.

    That base is the source and what a later commit of the series undoes (`make_series` names it
    again).
    """
    kept = kept_import(tarball, cache, progress)
    if not repo.exists():
        repo.parent.mkdir(parents=True, exist_ok=True)
        half = Path(tempfile.mkdtemp(prefix=f".{repo.name}-", dir=repo.parent))
        # Hard links where the file system has them: no second copy of 300 MB.
        process.run(
            [
                "git",
                "-c",
                f"safe.directory={kept}",
                "clone",
                "--quiet",
                "--bare",
                "--local",
                kept,
                half / "repo",
            ],
            env=process.git_environment(),
        )
        (half / "repo").rename(repo)
        half.rmdir()
    git = Repository(repo)
    source = Repository(kept).commit_id(SOURCE_REF)
    assert source is not None
    if git.commit_id(source) is None:
        progress("fetching the kernel source into the repository")
        git.run("-c", f"safe.directory={kept}", "fetch", "--quiet", kept, SOURCE_REF)
    git.run("update-ref", SOURCE_REF, source)
    base = make_series(repo, seed=0, plant="large", progress=lambda _: None).base
    git.run("update-ref", "refs/heads/base", base)
    return base


def use_tree(repo: Path, url: str, ref: str, progress: Progress = print) -> str:
    """Fetch `ref` of another kernel tree into `repo` (made bare if it is not there).

    Answer its commit.
    """
    if not repo.exists():
        process.run(["git", "init", "--bare", "--quiet", repo], env=process.git_environment())
    git = Repository(repo)
    source = url if "://" in url or not Path(url).exists() else str(Path(url).resolve())
    progress(f"fetching {ref} of {source}")
    for wanted in (f"refs/heads/{ref}", f"refs/tags/{ref}", ref):
        status, said = git.attempt(
            "-c",
            "safe.directory=*",
            "fetch",
            "--quiet",
            "--no-tags",
            source,
            f"+{wanted}:refs/demo/base",
        )
        if status == 0:
            break
    else:
        raise TreeError(
            f"cannot fetch {ref} from {source}:"
            f" {said.splitlines()[-1] if said else 'git said nothing'}; check TREE and BASE"
        )
    commit = git.commit_id("refs/demo/base")
    assert commit is not None
    for needed in ("Makefile", "mm/page_alloc.c"):
        if git.attempt("cat-file", "-e", f"{commit}:{needed}")[0] != 0:
            raise TreeError(f"{source} at {ref} is not a kernel tree: it has no {needed}")
    git.run("update-ref", SOURCE_REF, commit)
    return commit


# ---------------------------------------------------------------------------- the series


def patch_text(name: str) -> tuple[str, bytes]:
    """The commit message and the diff of a patch of the series."""
    message, _, diff = (HERE / "series" / f"{name}.patch").read_text().partition("\n---\n")
    subject, _, body = message.removeprefix("Subject: ").partition("\n")
    return f"{subject}\n\n{body.strip()}\n", diff.encode()


def workload(name: str) -> dict[str, Any]:
    """What WORKLOAD=`name` watches: `testbox`, `jobs`, and `plants` that a seed picks from."""
    known: dict[str, dict[str, Any]] = catalogue()["workloads"]
    if name not in known:
        raise TreeError(f"there is no workload {name!r}: WORKLOAD is one of {', '.join(known)}")
    return known[name]


def plant_of_seed(seed: int, watched: str = "allocator") -> str:
    """The plant that a seed selects when none is requested."""
    plants = workload(watched)["plants"]
    return str(plants[seed % len(plants)])


def _shuffled(names: Sequence[str], *salt: object) -> list[str]:
    """A permutation that depends on nothing but its arguments, in every version of Python."""
    return sorted(
        names, key=lambda name: hashlib.sha256(" ".join(map(str, (*salt, name))).encode()).digest()
    )


def _number(below: int, *salt: object) -> int:
    return (
        int.from_bytes(hashlib.sha256(" ".join(map(str, salt)).encode()).digest()[:8], "big")
        % below
    )


@dataclass(frozen=True, slots=True)
class Slot:
    """The entry at one position of the series."""

    patch: str
    role: str


def plan(
    recipe: Recipe, fits: Callable[[str], bool] = lambda name: True
) -> tuple[list[Slot], list[str]]:
    """The patches of a series in order, and those left out because they do not fit the tree.

    The harmless ones are as many as it takes to make `recipe.count`; the culprit never comes first.
    """
    book = catalogue()
    if recipe.plant not in book["plants"]:
        raise TreeError(
            f"there is no plant {recipe.plant!r}: PLANT is one of {', '.join(book['plants'])}"
        )
    plant = book["plants"][recipe.plant]
    fixed = _fixed_slots(book, recipe)
    free = [place for place in range(1, recipe.count + 1) if place not in fixed]
    if recipe.count < 8 or len(free) < 8:
        raise TreeError(
            f"a series of {recipe.count} has no room for all roles:"
            f" ask for at least {8 + len(fixed)}"
        )
    dropped: list[str] = []

    def fitting(names: Sequence[str], role: str) -> list[Slot]:
        dropped.extend(name for name in names if not fits(name))
        return [Slot(name, role) for name in names if name not in dropped]

    salt = (recipe.seed, recipe.plant)
    wanted = fitting(plant["look_alikes"], "look-alike")
    if fits(plant["given"]):
        wanted.append(Slot(plant["improvement"], "improvement"))
    else:
        dropped += [plant["given"], plant["improvement"]]
    wanted += fitting(_shuffled(book["same_image"], *salt, "same"), "same-image")[:1]
    places = list(free)
    slots = dict(fixed)
    if plant["patch"] is not None:
        if not fits(plant["patch"]):
            raise TreeError(
                f"plant {recipe.plant} does not apply to this tree: give another PLANT or BASE"
            )
        later = [place for place in places if place > 1]
        slots[later[_number(len(later), *salt, "position")]] = Slot(plant["patch"], "culprit")
    room = recipe.count - len(slots) - len(wanted)
    harmless: list[Slot] = []
    for name in _shuffled(book["harmless"], *salt, "choice"):
        if len(harmless) < room:
            harmless += fitting([name], "harmless")
    if len(harmless) < room:
        raise TreeError(
            f"only {len(harmless)} harmless commits fit this tree,"
            f" {room} are needed: ask for fewer with --count"
        )
    by_name = {slot.patch: slot for slot in [*wanted, *harmless]}
    order = iter(_shuffled(list(by_name), *salt, "order"))
    for place in places:
        if place not in slots:
            slots[place] = by_name[next(order)]
    return [slots[place] for place in sorted(slots)], dropped


def _fixed_slots(book: Mapping[str, Any], recipe: Recipe) -> dict[int, Slot]:
    """Commits whose place the caller chose: broken ones with what mends them, and the header."""
    asked: list[tuple[int, Slot]] = []
    for kind, place in recipe.extras().items():
        if place is None:
            continue
        if kind == "header":
            asked.append((place, Slot(book["header"], "header")))
        else:
            broken, mended = book["broken"][kind]
            asked += [(place, Slot(broken, kind)), (place + 1, Slot(mended, "mended"))]
    slots = dict(asked)
    if len(slots) != len(asked) or not all(1 <= place <= recipe.count for place in slots):
        raise TreeError(
            f"places must differ and lie within 1..{recipe.count};"
            " a broken commit also takes the place after its own"
        )
    if recipe.unbootable and recipe.hanging:
        raise TreeError(
            "an unbootable and a hanging commit change the same line: ask for one of them"
        )
    return slots


def make_series(
    repo: Path,
    seed: int,
    plant: str | None = None,
    *,
    onto: str = SOURCE_REF,
    count: int = 20,
    unbuildable: int | None = None,
    unbootable: int | None = None,
    hanging: int | None = None,
    header: int | None = None,
    progress: Progress = print,
) -> Series:
    """Write branch `demo-<seed>-<plant>` into `repo`: what the base is given on `onto`,
    then the series on that base.
    """
    recipe = Recipe(
        seed=seed,
        plant=plant or plant_of_seed(seed),
        count=count,
        unbuildable=unbuildable,
        unbootable=unbootable,
        hanging=hanging,
        header=header,
    )
    start = Repository(repo).commit_id(onto)
    if start is None:
        raise TreeError(f"{repo} has no commit {onto}: make_base or use_tree comes first")
    book = catalogue()
    with with_index(repo, start) as git:
        slots, dropped = plan(
            recipe,
            lambda name: (
                git.attempt("apply", "--cached", "--check", stdin=patch_text(name)[1])[0] == 0
            ),
        )
        for name in dropped:
            progress(f"left out: {name} does not apply to this tree")
        given = book["plants"][recipe.plant]["given"]
        base = start if given in dropped else applied(git, start, given)
        commits = []
        parent = base
        for slot in slots:
            parent = applied(git, parent, slot.patch)
            subject = patch_text(slot.patch)[0].partition("\n")[0]
            commits.append(Commit(sha=parent, subject=subject, role=slot.role, patch=slot.patch))
    git = Repository(repo)
    git.run("update-ref", f"refs/heads/{recipe.branch()}", parent)
    return _series(recipe, base, commits, dropped)


def applied(git: Repository, parent: str, name: str) -> str:
    """Commit patch `name` on `parent`; the index has to hold `parent`."""
    message, diff = patch_text(name)
    status, said = git.attempt("apply", "--cached", stdin=diff)
    if status != 0:
        raise TreeError(
            f"patch {name} does not apply: {said.splitlines()[0] if said else 'git said nothing'}"
        )
    return git.commit(parent, message)


def _series(recipe: Recipe, base: str, commits: Sequence[Commit], dropped: Sequence[str]) -> Series:
    plant = catalogue()["plants"][recipe.plant]
    by_role = {commit.role: commit.sha for commit in commits}
    culprit = by_role.get("culprit")
    return Series(
        base=base,
        tip=commits[-1].sha,
        branch=recipe.branch(),
        seed=recipe.seed,
        plant=recipe.plant,
        commits=tuple(commits),
        culprit=culprit,
        position=None if culprit is None else [commit.sha for commit in commits].index(culprit) + 1,
        improvement=by_role.get("improvement"),
        metric=plant["metric"],
        test=plant.get("test"),
        effect_pct=plant.get("effect_pct", {}),
        dropped=tuple(dropped),
    )


# ---------------------------------------------------------------------------- by hand


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    cache = Path(
        os.environ.get("SWINGBOT_PATHS_CACHE")
        or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "swingbot"
    )
    parser = argparse.ArgumentParser(
        prog="python -m tests.demo.tree",
        description="Make the demo's kernel repository and one series in it.",
    )
    parser.add_argument(
        "--repo", type=Path, required=True, help="the repository; made if it is not there"
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=1,
        help="picks the plant, its place and the harmless commits (default 1)",
    )
    parser.add_argument(
        "--plant",
        help=(
            "large, medium, small, none; for trials also init, slub, memory,"
            " swap (default: by seed)"
        ),
    )
    parser.add_argument("--tree", help="git URL or path of another kernel tree, with --base")
    parser.add_argument("--base", help="branch, tag or commit of --tree to put the series on")
    parser.add_argument(
        "--cache",
        type=Path,
        default=cache,
        help=f"where the imported source is kept (default {cache})",
    )
    parser.add_argument(
        "--count", type=int, default=20, help="commits in the series, 12 to 40 (default 20)"
    )
    for word, what in (
        ("unbuildable", "does not compile"),
        ("unbootable", "panics at boot"),
        ("hanging", "hangs at boot"),
        ("header", "touches include/linux/mm.h"),
    ):
        parser.add_argument(
            f"--with-{word}",
            type=int,
            metavar="POS",
            dest=word,
            help=f"the commit at POS {what}"
            + ("" if word == "header" else "; the next one mends it"),
        )
    parser.add_argument("--json", action="store_true", help="print the series as JSON")
    given = parser.parse_args(words)
    if (given.tree is None) != (given.base is None):
        parser.error("--tree and --base belong together")
    return given


def main(words: Sequence[str] | None = None) -> int:
    """0 done; 1 our failure; 2 wrong input."""
    given = _arguments(words)

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    try:
        if given.tree is None:
            make_base(given.repo, given.cache, say)
        else:
            use_tree(given.repo, given.tree, given.base, say)
        extras = {
            word: getattr(given, word)
            for word in ("unbuildable", "unbootable", "hanging", "header")
        }
        series = make_series(
            given.repo, given.seed, given.plant, count=given.count, progress=say, **extras
        )
    except TreeError as error:
        say(f"error: {error}")
        return 2
    except (process.CommandError, OSError) as error:
        say(f"error: {error}")
        return 1
    if given.json:
        print(json.dumps(asdict(series), indent=1))
    else:
        print(f"base {series.base}\ntip  {series.tip}  branch {series.branch}")
        for number, commit in enumerate(series.commits, start=1):
            print(f"{number:3} {commit.sha[:12]} {commit.role:11} {commit.subject}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
