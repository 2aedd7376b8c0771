"""Two to six kernels that have boots, compared without new ones, for pages and commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol
from urllib.parse import quote, urlencode

from swingbot.core.model.comparison_row import ComparisonRow, without_aliases
from swingbot.core.model.lookup import NotFound
from swingbot.core.results.existing_boots import JudgedResults, in_order, judge_existing
from swingbot.core.results.missing_boots import FillingCosts, Gap, gaps, gone_words
from swingbot.core.text.numbers import count
from swingbot.core.text.plain import cut
from swingbot.service.ports import Git, GitError, Lab, RequestError
from swingbot.service.report.results_query import ResultsQuery

Row = dict[str, Any]
# A name, with at most one step back from it: git's other ways to name a commit search the whole
# history.
_REF: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+-]{0,199}(?:[~^][0-9]{0,4})?")
_MOVED: Final = 60  # rows of what moved
_CULPRITS: Final = 400  # distinct culprits whose place in history is looked up
SORTED_GRIDS: Final = ("size", "significance")  # else the tests of a unit job are together


class ResultReads(Protocol):
    """Read models, each given an open connection."""

    def trees_with_results(self, conn: Any) -> list[Row]: ...
    def result_tree(self, conn: Any, name: str) -> Row: ...
    def measured_kernels(self, conn: Any, tree: str, most: int = 200) -> list[Row]: ...
    def named_kernels(self, conn: Any, tree: Row, ref: str) -> list[Row]: ...
    def results(self, conn: Any, kernels: Sequence[Row], metric: str = "") -> Row: ...
    def found_culprits(self, conn: Any) -> list[Row]: ...
    def boot_times(
        self, conn: Any, places: Iterable[tuple[str, str]]
    ) -> dict[tuple[str, str], float | None]: ...
    def build_time(self, conn: Any) -> float | None: ...
    def testbox(self, conn: Any, name: str) -> Row: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingResults:
    """`reading` opens a snapshot; `lab` gives the metrics' definitions and the mirror's history,
    `job_files` the names of the shipped ones.
    """

    read: ResultReads
    reading: Callable[[], AbstractContextManager[Any]]
    lab: Callable[[], Lab]
    job_files: Callable[[], Sequence[str]]

    def document(self, query: ResultsQuery) -> Row:
        """Return the results, or the choice of kernels for a query of fewer than two.

        Raises RequestError, NotFound.
        """
        query = self.in_tree(query)
        if chooses(query):
            return self.choice(query)[0]
        return self.compared(query)[0]

    def in_tree(self, query: ResultsQuery) -> ResultsQuery:
        """Return the query; one of several kernels without a tree in the only one that has
        results.
        """
        if query.tree or len(query.kernels) < 2:
            return query
        with self.reading() as conn:
            return replace(query, tree=_only_tree(self.read.trees_with_results(conn)))

    def choice(self, query: ResultsQuery) -> tuple[Row, list[str]]:
        """Return trees and kernels that have boots, and the kernels that the query names.

        Raises NotFound, RequestError.
        """
        read = self.read
        with self.reading() as conn:
            trees = read.trees_with_results(conn)
            name = query.tree or _only_tree(trees)
            if not name:
                return {"tree": None, "trees": trees, "kernels": []}, []
            tree = read.result_tree(conn, name)
            chosen = [self.named(conn, tree, ref)[0]["id"] for ref in query.kernels]
            kernels = read.measured_kernels(conn, name)
        return {"tree": name, "trees": trees, "kernels": kernels}, chosen

    def named(
        self, conn: Any, tree: Row, ref: str, testboxes: Sequence[str] = ()
    ) -> tuple[Row, list[str]]:
        """Return the kernel that `ref` names and what a reader must know about the choice.

        Those with boots on `testboxes` come first: their configuration may not be the tree's.
        Raises NotFound, RequestError.
        """
        found = self.read.named_kernels(conn, tree, ref)
        commit = None
        if not found and _REF.fullmatch(ref) and ".." not in ref:
            try:
                commit = self.lab().tools.git.resolve(tree["name"], ref)
            except GitError:
                commit = None
            found = self.read.named_kernels(conn, tree, commit) if commit else []
        if not found and commit is None:
            raise NotFound(
                f"tree {tree['name']} has no kernel {cut(ref, 80)!r}: give a variant (v12), a"
                " commit or prefix that was built, base, tip, or a release;"
                f" /results?tree={quote(tree['name'])} lists all kernels with boots"
            )
        if not found:
            return _unmeasured(tree, str(commit), ref), []
        commits = {one["commit"] for one in found}
        if len(commits) > 1 and found[0]["commit"].startswith(ref):
            raise RequestError(
                f"{ref} is the prefix of {len(commits)} commits with kernels in tree"
                f" {tree['name']}; give more digits"
            )
        found.sort(key=lambda one: bool(testboxes) and not _booted_on(one, testboxes))
        kernel, *others = found
        also = [one for one in others if one["boots"]]
        if not also:
            return kernel, []
        listed = ", ".join(
            f"{one['id']} ({one['compiler']}, {one['kconfig']}"
            + (f", layout {one['layout']}" if one["layout"] else "")
            + ")"
            for one in also[:5]
        )
        return kernel, [
            f"{cut(ref, 80)} names {len(also) + 1} kernels with boots; shown is {kernel['id']}"
            f" ({kernel['compiler']}, {kernel['kconfig']}), others are {listed}"
        ]

    def compared(self, query: ResultsQuery) -> tuple[Row, list[ComparisonRow]]:
        """Return the document of two or more kernels (docs/json.md) and the rows of its grid.

        Raises RequestError, NotFound.
        """
        read, lab = self.read, self.lab()
        with self.reading() as conn:
            tree = read.result_tree(conn, query.tree)
            kernels: list[Row] = []
            notes: list[str] = []
            for ref in query.kernels:
                kernel, more = self.named(conn, tree, ref, query.testboxes)
                notes += more
                if kernel["id"] and kernel["id"] in [one["id"] for one in kernels]:
                    notes.append(f"{cut(ref, 80)} names {kernel['id']} again; it is shown once")
                    continue
                kernels.append(kernel)
            if len(kernels) < 2:
                raise RequestError(
                    f"all names given are kernel {kernels[0]['id']} ({kernels[0]['name']});"
                    " give two different kernels"
                )
            _distinct_names(kernels)
            measured = read.results(conn, kernels, query.metric)
            places = {(boot["testbox"], boot["spec"]) for boot in measured["boots"]}
            times, build = read.boot_times(conn, places), read.build_time(conn)
            culprits = read.found_culprits(conn)
            self._check_testboxes(conn, query, measured)
        judged = judge_existing(measured, lab.catalogue.programs)
        shown = _filtered(judged, query)
        files = list(dict.fromkeys([*tree["jobs"], *self.job_files()]))
        costs = FillingCosts(job_files=files, boot_seconds=times, build_seconds=build)
        missing = gaps(measured, kernels, judged.places, costs)
        rows = in_order(shown, query.sort)
        in_grid = rows if query.sort in SORTED_GRIDS else shown
        return {
            "tree": tree["name"],
            "kernels": [_of_kernel(kernel) for kernel in kernels],
            "filters": {
                "testbox": list(query.testboxes),
                "test": query.test,
                "metric": query.metric,
                "verdict": list(query.verdicts),
            },
            "sort": query.sort,
            "rows": [_row_document(row, judged) for row in rows],
            "testboxes": list(measured["testboxes"].values()),
            "missing": [_gap_document(tree, kernels, gap) for gap in missing],
            "moved": _moved(lab.tools.git, kernels, _benchmarks(judged, query), culprits),
            "notes": [*notes, *_notes(kernels, measured, judged, query, shown)],
        }, in_grid

    def _check_testboxes(self, conn: Any, query: ResultsQuery, measured: Row) -> None:
        """Raise NotFound for a testbox that the lab never had."""
        for name in query.testboxes:
            if name not in measured["testboxes"]:
                self.read.testbox(conn, name)


def _booted_on(kernel: Row, testboxes: Sequence[str]) -> bool:
    return not set(testboxes).isdisjoint(kernel["testboxes"] or ())


def chooses(query: ResultsQuery) -> bool:
    """Return True if the query does not say what is compared."""
    return not query.tree or len(query.kernels) < 2


def _only_tree(trees: Sequence[Row]) -> str:
    """Return the name of the tree if there is one alone, or an empty string."""
    return str(trees[0]["name"]) if len(trees) == 1 else ""


def _unmeasured(tree: Row, commit: str, ref: str) -> Row:
    """A commit that was never requested as a kernel."""
    return {
        "id": None,
        "name": cut(ref, 40),
        "release": None,
        "commit": commit,
        "subject": "",
        "author": "",
        "kconfig": tree["kconfig"],
        "compiler": tree["compiler"],
        "layout": 0,
        "origin": "branch",
        "trust": tree["trust"],
        "build_key": None,
        "build": None,
        "image_sha256": None,
        "error": None,
        "boots": 0,
        "testboxes": [],
        "latest": None,
    }


_KERNEL: Final = (
    *("id", "name", "release", "commit", "subject", "author", "kconfig", "compiler", "layout"),
    *("origin", "trust", "build_key", "build", "boots", "testboxes", "latest"),
)


def _of_kernel(kernel: Row) -> Row:
    return {key: kernel[key] for key in _KERNEL}


def _distinct_names(kernels: Sequence[Row]) -> None:
    """Add to equal names what tells their kernels apart."""
    for name in {one["name"] for one in kernels}:
        alike = [one for one in kernels if one["name"] == name]
        for one in alike if len(alike) > 1 else ():
            one["name"] = f"{name} ({one['compiler']}, {one['id']})"


def _filtered(judged: JudgedResults, query: ResultsQuery) -> list[ComparisonRow]:
    return [
        row
        for row in judged.rows
        if (not query.testboxes or row.testbox in query.testboxes)
        and query.test.lower() in row.unit_job.lower()
        and (not query.verdicts or row.verdict in query.verdicts)
    ]


def _benchmarks(judged: JudgedResults, query: ResultsQuery) -> list[ComparisonRow]:
    """The rows that say what moved: no counters, unless they were selected."""
    return [row for row in judged.rows if query.metric or row.klass not in ("counter", "profile")]


def _notes(
    kernels: Sequence[Row],
    measured: Row,
    judged: JudgedResults,
    query: ResultsQuery,
    shown: Sequence[ComparisonRow],
) -> list[str]:
    """Why something is not on the page, in sentences."""
    notes = []
    for index, kernel in enumerate(kernels):
        if not any(boot["kernel"] == index for boot in measured["boots"]):
            notes.append(f"{kernel['name']} has no boots yet")
    if not judged.rows and not notes:
        notes.append(_nothing_common(kernels, judged, query))
    elif judged.rows and not shown:
        notes.append(
            f"none of the {count(len(judged.rows), 'row')} matches the filters; without them all"
            " are shown"
        )
    for testbox in measured["testboxes"].values():
        if testbox["state"] == "gone":
            notes.append(gone_words(testbox["name"], testbox["others"]))
    if measured["cut"]:
        notes.append("there are more values than one page judges; select metrics with metric=")
    if judged.unjudged:
        notes.append(
            f"{count(judged.unjudged, 'further metric')} were not judged; select some with metric="
        )
    return notes


def _nothing_common(kernels: Sequence[Row], judged: JudgedResults, query: ResultsQuery) -> str:
    """Say what each kernel has, as nothing was measured on two of them."""
    if query.metric and judged.places:
        return (
            f"no metric whose name contains {cut(query.metric, 80)!r} was measured on two of these"
            " kernels by the same test on the same testbox"
        )
    each = []
    for index, kernel in enumerate(kernels):
        own = [f"{p.job.name} on {p.testbox}" for p in judged.places if index in p.boots]
        more = f" and {len(own) - 3} more" if len(own) > 3 else ""
        each.append(f"{kernel['name']}: {', '.join(own[:3]) + more or 'no result'}")
    return (
        "these kernels have no test on a testbox in common, and results of different tests or"
        f" testboxes are never compared ({'; '.join(each)})"
    )


def _gap_document(tree: Row, kernels: Sequence[Row], gap: Gap) -> Row:
    """A gap for pages and scripts; `href` is the form that would fill it."""
    kernel = kernels[gap.kernel]
    other = next(one for index, one in enumerate(kernels) if index != gap.kernel)
    by_hand = kernel["origin"] == "patch" or kernel["layout"] > 0
    query = {
        "tree": tree["name"],
        "base": other["commit"],
        "head": kernel["commit"],
        "job": gap.jobs[0] if gap.jobs else "",
        "testbox": gap.testbox,
        "boots": str(gap.boots),
    }
    fills = not gap.never and not by_hand
    return {
        "kernel": gap.kernel,
        "testbox": gap.testbox,
        "unit_jobs": list(gap.unit_jobs),
        "why": gap.why
        + ("; only the command line can boot a patched kernel again" if by_hand else ""),
        "boots": gap.boots,
        "reference_boots": gap.together,
        "seconds": gap.seconds,
        "build_seconds": gap.build_seconds,
        "href": f"/compare?{urlencode(query)}" if fills else None,
    }


def _row_document(row: ComparisonRow, judged: JudgedResults) -> Row:
    """A row as docs/json.md has it, with its kernels and which boots were compared."""
    place = next(
        place
        for place in judged.places
        if (place.testbox, place.job.name) == (row.testbox, row.unit_job)
    )
    return row.to_json() | {
        "arm": row.arm,
        "reference": row.reference,
        "together": place.together,
        "alias_of": row.alias_of,
        "counter": row.klass in ("counter", "profile", "time"),
    }


def _moved(
    git: Git, kernels: Sequence[Row], rows: Sequence[ComparisonRow], culprits: Sequence[Row]
) -> list[Row]:
    """What moved from the first kernel to each other one, the largest first, and who did it.

    `incidents` are those whose commit lies between the two in git's order; each row has those of
    its own metric. `order` says why the incidents could not be placed; None: they could.
    """
    shown = without_aliases(rows)
    return [
        _moved_to(git, kernels, arm, [row for row in shown if row.arm == arm], culprits)
        for arm in range(1, len(kernels))
    ]


def _moved_to(
    git: Git,
    kernels: Sequence[Row],
    arm: int,
    rows: Sequence[ComparisonRow],
    culprits: Sequence[Row],
) -> Row:
    between, backwards, order = _between(
        git, kernels[0]["commit"], kernels[arm]["commit"], culprits
    )
    incidents: dict[str, Row] = {}
    for one in between:
        names = ("incident", "status", "commit", "subject", "author", "tree")
        entry = incidents.setdefault(
            one["incident"], {key: one[key] for key in names} | {"metrics": []}
        )
        metric = {key: one[key] for key in ("testbox", "unit_job", "metric", "change_pct")}
        if metric not in entry["metrics"]:
            entry["metrics"].append(metric | {"bisection": one["bisection"]})
    changed = sorted(
        (row for row in rows if row.changed and row.reference == 0),
        key=lambda row: -abs(row.change_pct or 0.0),
    )
    return {
        "kernel": arm,
        "backwards": backwards,
        "order": order,
        "judged": sum(row.reference == 0 for row in rows),
        "changed": len(changed),
        "rows": [_with_culprits(row, between) for row in changed[:_MOVED]],
        "incidents": list(incidents.values()),
    }


def _with_culprits(row: ComparisonRow, between: Sequence[Row]) -> Row:
    own = [one for one in between if (one["unit_job"], one["metric"]) == (row.unit_job, row.metric)]
    names = ("testbox", "unit_job", "metric")
    return {
        **{name: getattr(row, name) for name in names},
        "verdict": row.verdict,
        "change_pct": row.change_pct,
        "interval_pct": list(row.interval_pct) if row.interval_pct else None,
        "incidents": list(dict.fromkeys(one["incident"] for one in own)),
    }


def _between(
    git: Git, first: str, last: str, culprits: Sequence[Row]
) -> tuple[list[Row], bool, str | None]:
    """Return the culprits between two commits, whether the first is the newer one, and why not."""
    commits = list(dict.fromkeys(one["commit"] for one in culprits))[:_CULPRITS]
    if not commits:
        return [], False, None
    try:
        forth, back = git.places(first, last, [*commits, last]), {}
        if last not in forth:
            back = git.places(last, first, [*commits, first])
    except GitError:
        return [], False, "the mirror does not have the history between the two"
    inside: dict[str, Any] = forth or back
    aside = None
    if forth and not git.is_ancestor(first, last):
        aside = "the first kernel is not an ancestor of the other, whose own commits are listed"
    return [one for one in culprits if one["commit"] in inside], not forth and bool(back), aside
