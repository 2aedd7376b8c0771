"""Resolve the kernels of an experiment: commits of a range, patches of a series, named patch stacks
and branches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Final

from swingbot.core.model.records import CommitFacts, Tree
from swingbot.core.model.statuses import VariantOrigin
from swingbot.core.patchset.model import PatchSeries, SeriesPatch
from swingbot.core.table.layout import MOST_ROWS
from swingbot.service.kernel.variants import resolve_commit
from swingbot.service.ports import GitError, Lab, RequestError

BASE: Final = "base"  # name of the common base's row if the base was given by hash


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedKernel:
    """A named variant: a stack of patches on the base, or a commit of the tree."""

    name: str
    patches: Sequence[SeriesPatch] = ()
    ref: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRequest:
    """The kernels of an experiment: a range, or a base with a series or variants."""

    range: tuple[str, str] | None = None  # first-parent commits after the first, up to the second
    base: str | None = None
    series: PatchSeries | None = None  # one kernel per patch, each on top of the previous one
    named: Sequence[NamedKernel] = ()
    paths: Sequence[str] = ()  # for a range: only commits that touch one of these globs

    @property
    def refs(self) -> list[str]:
        """The commits, tags and branches named in the request."""
        named = [kernel.ref for kernel in self.named if kernel.ref is not None]
        return [ref for ref in (*(self.range or ()), self.base, *named) if ref is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentKernel:
    """One kernel of an experiment, before it is built."""

    name: str
    facts: CommitFacts
    origin: VariantOrigin
    about: str = ""  # the subject, if the name does not show it


def kernels_of(lab: Lab, tree: Tree, request: KernelRequest) -> list[ExperimentKernel]:
    """Return the kernels in the order of the rows, the base first. Raises RequestError."""
    try:
        if request.range is not None:
            return _of_range(lab, tree, request)
        return list(_beside_base(lab, tree, request))
    except GitError as error:
        raise RequestError(str(error)) from None


def _of_range(lab: Lab, tree: Tree, request: KernelRequest) -> list[ExperimentKernel]:
    assert request.range is not None
    if request.base is not None or request.series is not None:
        raise RequestError(
            "a range cannot be combined with --base or --series; give one or the other"
        )
    good, bad = (resolve_commit(lab.tools.git, tree, ref) for ref in request.range)
    if good == bad or not lab.tools.git.is_ancestor(good, bad):
        raise RequestError(
            f"{request.range[0]}..{request.range[1]} is empty: {request.range[0]} is not an"
            f" ancestor of {request.range[1]}, or the same commit"
        )
    commits = lab.tools.git.first_parents(good, bad)
    if request.paths:
        along = lab.tools.git.paths_along(good, bad)
        commits = [c for c in commits if _touches(along.get(c, ()), request.paths)]
    if len(commits) + 1 > MOST_ROWS:
        raise RequestError(
            f"{request.range[0]}..{request.range[1]} has {len(commits)} commits; at most"
            f" {MOST_ROWS - 1} are allowed in one experiment. Narrow the range, or give --paths"
        )
    if not commits:
        raise RequestError(
            f"no commit of {request.range[0]}..{request.range[1]} touches "
            f"{', '.join(request.paths)}"
        )
    rows = [
        ExperimentKernel(
            name=_short(request.range[0]), facts=lab.tools.git.facts(good), origin="request"
        )
    ]
    for commit in commits:
        facts = lab.tools.git.facts(commit)
        merge = "merge: " if len(facts.parents) > 1 else ""
        about = f"{merge}{facts.subject}"
        rows.append(ExperimentKernel(name=commit[:12], facts=facts, origin="request", about=about))
    return rows + [kernel_named(lab, tree, good, kernel) for kernel in request.named]


def _beside_base(lab: Lab, tree: Tree, request: KernelRequest) -> Iterator[ExperimentKernel]:
    if request.base is None:
        raise RequestError(
            "name the kernels: give a range A..B, or --base with --series or --variant"
        )
    count = len(request.series.patches) if request.series is not None else 0
    if 1 + count > MOST_ROWS:
        raise RequestError(
            f"the series has {count} patches; at most {MOST_ROWS - 1} are allowed in one experiment"
        )
    base = resolve_commit(lab.tools.git, tree, request.base)
    yield ExperimentKernel(
        name=_short(request.base), facts=lab.tools.git.facts(base), origin="request"
    )
    if request.series is not None:
        patches = request.series.patches
        for patch, commit in zip(patches, lab.tools.git.apply_series(base, patches), strict=True):
            yield ExperimentKernel(
                name=f"{patch.number}/{len(patches)}",
                facts=lab.tools.git.facts(commit),
                origin="patch",
                about=patch.subject,
            )
    for kernel in request.named:
        yield kernel_named(lab, tree, base, kernel)


def kernel_named(lab: Lab, tree: Tree, base: str, request: NamedKernel) -> ExperimentKernel:
    """Return a named kernel, with its patches applied on `base`. Raises RequestError."""
    try:
        if request.ref is not None:
            facts = lab.tools.git.facts(resolve_commit(lab.tools.git, tree, request.ref))
            return ExperimentKernel(name=request.name, facts=facts, origin="request")
        commit = lab.tools.git.apply_series(base, request.patches)[-1]
        return ExperimentKernel(
            name=request.name, facts=lab.tools.git.facts(commit), origin="patch"
        )
    except (GitError, RequestError) as error:
        raise RequestError(f"variant {request.name}: {error}") from None


def _short(ref: str) -> str:
    """Return a name as given; a long hash abbreviated."""
    return ref[:12] if len(ref) == 40 else ref


def _touches(changed: Sequence[str], globs: Sequence[str]) -> bool:
    return any(fnmatch(path, glob) for path in changed for glob in globs)
