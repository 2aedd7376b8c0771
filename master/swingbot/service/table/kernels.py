"""Resolve the kernels of a table: commits of a range, patches of a series, named patch stacks and
branches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch

from swingbot.core.limits import TABLE_ROWS
from swingbot.core.model.records import CommitFacts, Tree
from swingbot.core.model.statuses import VariantOrigin
from swingbot.core.patchset.model import PatchSeries
from swingbot.core.text.plain import cut
from swingbot.service.kernel.variants import resolve_commit
from swingbot.service.ports import Git, GitError, RequestError

NO_PATCHES = PatchSeries(patches=())


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedKernel:
    """A commit of the tree or the base, with a stack of patches on it.

    `each`: not one kernel but one for each patch, on top of those before it; their numbers follow
    `name`.
    """

    name: str
    ref: str | None = None  # None: the base
    series: PatchSeries = NO_PATCHES
    each: bool = False


def at(ref: str) -> NamedKernel:
    """Return the kernel of a commit, named as it was given."""
    return NamedKernel(name=short(ref), ref=ref)


def ends_of(range_: str) -> tuple[str, str]:
    """Return the ends of `A..B`. Raises RequestError."""
    first, dots, last = range_.partition("..")
    if not dots or not first or not last or last.startswith("."):
        raise RequestError(f"{range_[:80]}: write the range as A..B", key="range")
    return first, last


def patched(rows: Sequence[NamedKernel], stack: PatchSeries, base: str | None) -> list[NamedKernel]:
    """Return the rows with a stack of patches on the last commit that is named, or on `base` in a
    row of its own. Raises RequestError without either.
    """
    count = len(stack.patches)
    what = "patch" if count == 1 else f"{count} patches"
    for index, row in reversed(list(enumerate(rows))):
        if row.ref is not None and not row.series.patches:
            own = replace(row, name=f"{row.name}+{what}", series=stack)
            return [*rows[:index], own, *rows[index + 1 :]]
    if base is None:
        raise RequestError("name a kernel to apply the patches to", key="patch")
    return [*rows, NamedKernel(name=f"{short(base)}+{what}", ref=base, series=stack)]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRequest:
    """The kernels of a table, in the order of its rows: a range or a base, and named ones."""

    range: tuple[str, str] | None = None  # first-parent commits after the first, up to the second
    base: str | None = None
    base_name: str | None = None  # of the base, or first of the range; None: as given
    rows: Sequence[NamedKernel] = ()
    paths: Sequence[str] = ()  # for a range: only commits that touch one of these globs

    @property
    def refs(self) -> list[str]:
        """The commits, tags and branches named in the request."""
        refs = (*(self.range or ()), self.base, *(row.ref for row in self.rows))
        return [ref for ref in refs if ref is not None]

    def at(self, commits: Mapping[str, str]) -> KernelRequest:
        """Return the request with commits in place of their names; its kernels keep the names."""
        if not commits:
            return self
        first = self.base or (self.range and self.range[0])
        return replace(
            self,
            range=self.range and (_of(commits, self.range[0]), _of(commits, self.range[1])),
            base=self.base and _of(commits, self.base),
            base_name=first and short(first),
            rows=[
                row if row.ref is None else replace(row, ref=_of(commits, row.ref))
                for row in self.rows
            ],
        )

    @property
    def consecutive(self) -> bool:
        """Whether each row builds on the one above: a range or one series."""
        return self.range is not None or [row.each for row in self.rows] == [True]


def _of(commits: Mapping[str, str], ref: str) -> str:
    return commits.get(ref, ref)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableKernel:
    """One kernel of a table, before it is built."""

    name: str
    facts: CommitFacts
    origin: VariantOrigin = "request"
    about: str = ""  # the subject, if the name does not show it


def kernels_of(
    git: Git, tree: Tree, request: KernelRequest, most: int = TABLE_ROWS
) -> list[TableKernel]:
    """Return the kernels in the order of the rows, the base first. Raises RequestError.

    More than `most` are refused before a patch is applied.
    """
    try:
        return list(_kernels_of(git, tree, request, most))
    except GitError as error:
        raise RequestError(str(error)) from None


def _kernels_of(git: Git, tree: Tree, request: KernelRequest, most: int) -> Iterator[TableKernel]:
    _check_size(request, most)
    if request.range is not None:
        first, commits = _of_range(git, tree, request, request.range, most)
        name = request.base_name or short(request.range[0])
        yield TableKernel(name=name, facts=git.facts(first))
        for commit in commits:
            facts = git.facts(commit)
            merge = "merge: " if len(facts.parents) > 1 else ""
            yield TableKernel(name=commit[:12], facts=facts, about=f"{merge}{facts.subject}")
    elif request.base is not None:
        first = _commit(git, tree, request.base, "base")
        name = request.base_name or short(request.base)
        yield TableKernel(name=name, facts=git.facts(first))
    else:
        raise RequestError(
            "name the kernels: two or more commits, a range A..B, or a base with patches"
        )
    for kernel in request.rows:
        yield from kernels_named(git, tree, first, kernel)


def _commit(git: Git, tree: Tree, ref: str, key: str) -> str:
    try:
        return resolve_commit(git, tree, ref)
    except RequestError as error:
        raise RequestError(str(error), key=key) from None


def _check_size(request: KernelRequest, most: int) -> None:
    if request.range is not None and request.base is not None:
        raise RequestError(
            "a range cannot be combined with a base; give one or the other", key="range"
        )
    rows = sum(len(row.series.patches) if row.each else 1 for row in request.rows)
    if 1 + rows > most:
        raise RequestError(
            f"that makes {1 + rows} rows with the base; at most {most} are allowed in one table"
        )


def _of_range(
    git: Git, tree: Tree, request: KernelRequest, ends: tuple[str, str], most: int
) -> tuple[str, list[str]]:
    """Return the first commit of a range and those after it. Raises RequestError, GitError."""
    good, bad = (_commit(git, tree, ref, "range") for ref in ends)
    if good == bad or not git.is_ancestor(good, bad):
        raise RequestError(
            f"{ends[0]}..{ends[1]} is empty: {ends[0]} is not an ancestor of {ends[1]}, or the"
            " same commit",
            key="range",
        )
    commits = list(git.first_parents(good, bad))
    if request.paths:
        along = git.paths_along(good, bad)
        wanted = _matching({path for c in commits for path in along.get(c, ())}, request.paths)
        commits = [c for c in commits if not wanted.isdisjoint(along.get(c, ()))]
    if len(commits) + 1 > most:
        raise RequestError(
            f"{ends[0]}..{ends[1]} has {len(commits)} commits; at most {most - 1} are allowed in"
            " one table. Narrow the range, or give --paths",
            key="range",
        )
    if not commits:
        raise RequestError(
            f"no commit of {ends[0]}..{ends[1]} touches {cut(', '.join(request.paths), 200)}",
            key="paths",
        )
    return good, commits


def kernels_named(git: Git, tree: Tree, base: str, row: NamedKernel) -> list[TableKernel]:
    """Return the kernel or kernels of a row, with patches applied on its commit or on `base`.

    Raises RequestError that names the row.
    """
    patches = row.series.patches
    try:
        commit = base if row.ref is None else resolve_commit(git, tree, row.ref)
        made = git.apply_series(commit, patches) if patches else [commit]
        if not row.each:
            origin: VariantOrigin = "patch" if patches else "request"
            return [TableKernel(name=row.name, facts=git.facts(made[-1]), origin=origin)]
        return [
            TableKernel(
                name=f"{row.name} {patch.number}/{len(patches)}".strip(),
                facts=git.facts(commit),
                origin="patch",
                about=patch.subject,
            )
            for patch, commit in zip(patches, made, strict=True)
        ]
    except (GitError, RequestError) as error:
        why = f"{row.name}: {error}" if row.name else str(error)
        raise RequestError(why, key=row.name or "series") from None


def short(ref: str) -> str:
    """Return a name as given; a long hash abbreviated."""
    return ref[:12] if len(ref) == 40 else ref


def _matching(paths: Iterable[str], globs: Sequence[str]) -> set[str]:
    return {path for path in paths if any(fnmatch(path, glob) for glob in globs)}
