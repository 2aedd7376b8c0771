"""What a reader of a table may do next, as links to the pages of acts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final
from urllib.parse import urlencode

from swingbot.core.limits import TABLE_BOOTS
from swingbot.core.model import ids
from swingbot.core.model.comparison_row import ComparisonRow, Key, key_of
from swingbot.core.model.documents import Table
from swingbot.core.model.statuses import REQUESTED
from swingbot.core.table.layout import KERNEL
from swingbot.core.text.numbers import count

from ..ports import Row

_OPEN: Final = ("waiting", "running")


def acts_of(document: Table, rows: Sequence[ComparisonRow]) -> list[Row]:
    """Links with `href`, `words` and `go`, for the one that the result suggests; `rows` are those
    that the page shows.
    """
    return list(_acts(document, rows))


def _acts(document: Table, rows: Sequence[ComparisonRow]) -> Iterator[Row]:
    id, own = document["id"], document["kind"] in REQUESTED
    page = f"/{ids.KINDS[id[0]]}/{id}"
    more, settled = _settling(rows, TABLE_BOOTS - document["boots"])
    over = document["status"] not in _OPEN
    same = _request(document)
    settles = f"settles {count(settled, 'row')} not clear" if over and more else ""
    if own:
        yield {
            "href": f"{page}/extend?boots={more or 1}",
            "words": f"Add {count(more, 'boot')} a side: {settles}" if settles else "Add boots",
            "go": bool(settles),
        }
    elif same and settles:
        boots = {"boots": document["boots"] + more, "testbox": _testboxes(document)}
        yield {
            "href": f"/compare?{urlencode(same | boots)}",
            "words": f"Compare again with {count(more, 'more boot')} a side: {settles}",
            "go": True,
        }
    if same:
        yield {
            "href": f"/compare?{urlencode(same | {'boots': document['boots']})}",
            "words": "Ask again elsewhere, or with a patch",
            "go": False,
        }
    if own and not over:
        yield {"href": f"{page}/cancel", "words": "Cancel", "go": False}
    if document["private_to"] is not None:
        yield {"href": f"{page}/publish", "words": "Publish", "go": False}


def _settling(rows: Sequence[ComparisonRow], most: int) -> tuple[int, int]:
    """Boots a side that settle rows that are not clear, and how many rows; (0, 0): none do."""
    needed = [
        row.more_boots
        for row in rows
        if row.verdict == "unclear" and row.more_boots and row.more_boots <= most
    ]
    return max(needed, default=0), len(needed)


def _request(document: Table) -> dict[str, str | int]:
    """Fields of the form that asks for the same two commits; empty if it cannot name them."""
    arms = document["arms"]
    if len(arms) != 2 or any(
        arm["settings"] or set(arm["axes"]) - {KERNEL} or arm["variant"]["origin"] == "patch"
        for arm in arms
    ):
        return {}
    base, head = (arm["variant"]["commit"] for arm in arms)
    return {"tree": document["tree"], "base": base, "head": head}


def _testboxes(document: Table) -> str:
    return ",".join(dict.fromkeys(part["testbox"] for part in document["parts"]))


def searches(document: Table, rows: Iterable[ComparisonRow]) -> dict[Key, str]:
    """Addresses of the pages that bisect changes which nothing has searched yet."""
    searched = {key_of(row) for row in document["rows"] if row["bisection"]}
    pages = {}
    for row in rows:
        base, head = (document["arms"][arm]["variant"] for arm in (row.reference, row.arm))
        commits = (base["commit"], head["commit"])
        if (
            row.changed
            and row.key not in searched
            and len(set(commits)) == 2
            and "patch" not in (base["origin"], head["origin"])
        ):
            query = {
                "tree": document["tree"],
                "range": "..".join(commits),
                "metric": row.metric,
                "unit_job": row.unit_job,
                "testbox": row.testbox,
            }
            pages[row.key] = f"/bisect?{urlencode(query)}"
    return pages
