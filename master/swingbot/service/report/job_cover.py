"""Which jobs run the code of a commit or source file, from calls that earlier boots counted."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, Protocol

from swingbot.core.limits import COVERED_FUNCTIONS, FIELD_CHARACTERS
from swingbot.core.model import ids
from swingbot.core.model.records import Tree
from swingbot.core.model.upkeep_documents import Cover
from swingbot.core.proof.cover import (
    ChangedSource,
    CodeFunction,
    CountedRun,
    by_job,
    changed_sources,
    covered,
    object_of,
    source_path,
    written,
)
from swingbot.core.text.numbers import count
from swingbot.service.asked.commits import readable_commit
from swingbot.service.kernel.compare import files_of
from swingbot.service.ports import Git, GitError, Lab, RequestError
from swingbot.service.ports.kernels import KernelRecords, NoRecord
from swingbot.service.watch.trees import known_tree

_PATH: Final = re.compile(r"[^\x00-\x1f\x7f]+")
_SOURCE: Final = (".c", ".S", ".h")
_Rows = Sequence[Mapping[str, Any]]


class CountedCalls(Protocol):
    """Read models, given an open connection."""

    def counted_boots(self, conn: Any, tree: str) -> list[dict[str, Any]]: ...
    def counted_calls(
        self, conn: Any, boots: Sequence[int], functions: Iterable[str]
    ) -> list[dict[str, Any]]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCover:
    """`reading` opens a snapshot, `kernels` reads the records of builds. What a request over the
    web may not see (`visible.py`) does not exist.
    """

    read: CountedCalls
    reading: Callable[[], AbstractContextManager[Any]]
    kernels: KernelRecords
    lab: Callable[[], Lab]

    def of(self, tree: str, target: str) -> Cover:
        """Return what runs the code of `target`, a path or a commit. Raises RequestError."""
        lab = self.lab()
        watched = known_tree(lab.transaction, tree)
        with self.reading() as conn:
            boots = self.read.counted_boots(conn, tree)
        if not boots:
            raise RequestError(
                f"no boot of tree {tree} counted calls yet; to count those of all its jobs:"
                f" swingbot experiment base tip --tree {tree} --fragment traced=trace"
                " --with function-profile.counted --boots 1"
            )
        commit, wanted = _wanted(lab.tools.git, watched, target)
        functions, left_out = self._functions(boots[0], wanted, single=commit is None)
        if len(functions) > COVERED_FUNCTIONS:
            raise RequestError(
                f"{target} has {count(len(functions), 'function')}, and at most"
                f" {COVERED_FUNCTIONS} are looked up at once; name one of its sources"
            )
        names = {one.name for one in functions}
        with self.reading() as conn:
            calls = self.read.counted_calls(conn, [row["boot"] for row in boots], names)
        runs = _runs(boots, calls)
        found = covered(functions, runs)
        newest = {(run.unit_job, run.testbox): run.boot for run in reversed(runs)}
        rows = {job: (called, sum_) for job, called, sum_ in by_job(found)}
        jobs = [*rows, *sorted(newest.keys() - rows.keys())]
        return {
            "tree": tree,
            "commit": commit,
            "path": target if commit is None else None,
            "kernel": {key: boots[0][key] for key in ("commit", "kconfig", "build_key")},
            "jobs": [
                {
                    "unit_job": job[0],
                    "testbox": job[1],
                    "boot": ids.show("boot", newest[job]),
                    "functions": rows.get(job, (0, 0.0))[0],
                    "calls": rows.get(job, (0, 0.0))[1],
                }
                for job in jobs
            ],
            "functions": [
                {
                    "name": one.function.name,
                    "source": source_path(one.function.object),
                    "seen": one.seen,
                    "calls": [
                        {"unit_job": job, "testbox": testbox, "calls": calls}
                        for (job, testbox), calls in one.calls.items()
                    ],
                }
                for one in found
            ],
            "left_out": left_out,
        }

    def _functions(
        self, kernel: Mapping[str, Any], wanted: Mapping[str, ChangedSource | None], *, single: bool
    ) -> tuple[list[CodeFunction], list[dict[str, Any]]]:
        """Return the functions of the sources, and what has none, with the reason."""
        objects = {path: object_of(path) for path in wanted}
        where = f"the kernel {kernel['commit'][:12]} ({kernel['kconfig']})"
        try:
            functions, unknown = self.kernels.functions(
                files_of(kernel), [one for one in objects.values() if one]
            )
        except NoRecord as error:
            raise RequestError(str(error)) from None
        kept: list[CodeFunction] = []
        left_out: list[dict[str, Any]] = []
        for path, changed in wanted.items():
            object_ = objects[path]
            if object_ is None or object_ in unknown:
                why = _without_object(where, None if object_ is None else unknown[object_])
                if single:
                    raise RequestError(f"{path} {why}")
                left_out.append({"what": path, "reason": why})
                continue
            own = [one for one in functions if one.object == object_ and written(one)]
            if changed is None:
                kept += own
                continue
            if not changed.functions:
                reason = "changes outside of its functions only: comments, declarations or data"
                left_out.append({"what": path, "reason": reason})
            code = {one.name for one in own}
            names = changed.functions & code
            for name in sorted(changed.functions - code):
                inside = changed.in_code(name, code)
                names |= inside
                left_out.append({"what": f"{name} in {path}", "reason": _inlined(where, inside)})
            kept += [one for one in own if one.name in names]
        return kept, left_out


def _wanted(
    git: Git, tree: Tree, target: str
) -> tuple[str | None, dict[str, ChangedSource | None]]:
    """Return the commit, if it is one, and the sources; of each what changed, None for all."""
    if len(target) > FIELD_CHARACTERS or not _PATH.fullmatch(target):
        raise RequestError(
            f"a path or commit has at most {FIELD_CHARACTERS} characters, neither control"
            " characters nor line ends"
        )
    if "/" in target or target.endswith(_SOURCE):
        if target.startswith(("/", "~")) or ".." in target.split("/"):
            raise RequestError(
                f"{target} is outside the kernel's tree; name it as in the tree, mm/vmscan.c"
            )
        return None, {target.removeprefix("./"): None}
    commit = readable_commit(git, tree, target)
    try:
        changed = changed_sources(git.whole_sources(commit))
    except GitError as error:
        raise RequestError(str(error)) from None
    if not changed:
        raise RequestError(f"{commit[:12]} changes no .c, .S or .h file: no code to be run")
    return commit, dict(changed)


def _inlined(where: str, inside: Collection[str]) -> str:
    """Say why a function is not looked up, and which ones are instead."""
    if inside:
        return f"is inlined in {where}; looked up instead: {', '.join(sorted(inside))}"
    return f"is not a function of {where}: it is inlined everywhere, or not configured"


def _without_object(where: str, similar: str | None) -> str:
    """Say why a source has no object; `similar` names one that may be meant, None for a header."""
    if similar is None:
        return "has no object of its own: only .c and .S files have"
    return (
        f"has no object in {where}: it does not exist there, is not configured, or is included by"
        f" another file; {similar}".rstrip("; ")
    )


def _runs(boots: _Rows, calls: _Rows) -> list[CountedRun]:
    by_run: dict[tuple[int, str], dict[str, float]] = {}
    for row in calls:
        by_run.setdefault((row["boot"], row["unit_job"]), {})[row["function"]] = row["calls"]
    return [
        CountedRun(
            boot=row["boot"],
            unit_job=row["unit_job"],
            testbox=row["testbox"],
            asked=frozenset(row["functions"]),
            counted=int(row["counted"]),
            calls=by_run.get((row["boot"], row["unit_job"]), {}),
        )
        for row in boots
    ]
