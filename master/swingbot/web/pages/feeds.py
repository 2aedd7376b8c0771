"""`/feed/tree/<name>.atom`, `/feed/testbox/<name>.atom`: what happened lately, for feed readers.

Atom (RFC 4287). An entry keeps its id; `updated` changes when more is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree as Xml

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from swingbot.core.text.plain import clean, cut

from ..http.filters import swing_change
from ..http.snapshot_reader import SnapshotReader
from ..ports import Connection, Row

_ATOM: Final = "http://www.w3.org/2005/Atom"
_YEAR: Final = 2025  # of the ids (RFC 4151); it never changes
_TITLE: Final = 200  # characters
_EPOCH: Final = "1970-01-01T00:00:00Z"  # of a feed without entries

_Find = Callable[[Connection, str], Row]
_News = Callable[[Connection, str], list[Row]]


class Feeds:
    """`base` is the public address of these pages."""

    def __init__(self, source: SnapshotReader, base: str) -> None:
        self._source, self._base = source, base.rstrip("/")
        read = source.read
        self._kinds: Mapping[str, tuple[_Find, _News]] = {
            "tree": (read.tree, read.tree_news),
            "testbox": (read.testbox, read.testbox_news),
        }

    def routes(self) -> list[Route]:
        return [Route("/feed/{kind}/{file}", self.show)]

    def show(self, request: Request) -> Response:
        kind, file = request.path_params["kind"], request.path_params["file"]
        if kind not in self._kinds or not file.endswith(".atom"):
            raise HTTPException(404, "Feeds are /feed/tree/NAME.atom and /feed/testbox/NAME.atom.")
        find, news = self._kinds[kind]
        with self._source.reading() as conn:
            name = find(conn, file.removesuffix(".atom"))["name"]
            entries = news(conn, name)
        return Response(
            self._feed(kind, name, entries),
            media_type="application/atom+xml",
            headers={"cache-control": "no-cache"},
        )

    def _feed(self, kind: str, name: str, entries: list[Row]) -> bytes:
        path = f"/{kind}/{quote(name, safe='')}"
        feed = Xml.Element("feed", xmlns=_ATOM)
        _add(feed, "id", self._id(f"{kind}/{name}"))
        _add(feed, "title", f"swingbot: {kind} {name}")
        _add(feed, "updated", max((entry["updated"] for entry in entries), default=_EPOCH))
        _add(_add(feed, "author"), "name", "swingbot")
        _add(feed, "link", rel="self", href=f"{self._base}/feed{path}.atom")
        _add(feed, "link", rel="alternate", type="text/html", href=self._base + path)
        for entry in entries:
            self._entry(feed, entry, path)
        text: bytes = Xml.tostring(feed, encoding="utf-8", xml_declaration=True)
        return text

    def _entry(self, feed: Xml.Element, entry: Row, path: str) -> None:
        title, summary, href = _words(entry)
        one = _add(feed, "entry")
        _add(one, "id", self._id(f"{entry['kind']}/{entry['number']}"))
        _add(one, "title", cut(title, _TITLE))
        _add(one, "published", entry["published"])
        _add(one, "updated", entry["updated"])
        _add(one, "link", rel="alternate", type="text/html", href=self._base + (href or path))
        _add(one, "summary", clean(summary))

    def _id(self, what: str) -> str:
        host = urlsplit(self._base).hostname or "swingbot"
        return f"tag:{host},{_YEAR}:{quote(what)}"


def _words(entry: Row) -> tuple[str, str, str | None]:
    """Title, summary and address of an entry; no address: that of what the feed is about."""
    if entry["kind"] == "mail":
        return (
            f"mail: {entry['subject']}",
            f"about {entry['incident']}",
            f"/report/{entry['report']}",
        )
    if entry["kind"] == "state":
        return f"{entry['was']} -> {entry['state']}", entry["why"] or "no reason given", None
    change = f"{entry['metric']} {swing_change(entry)} {entry['direction']}"
    summary = f"{entry['unit_job']} on {entry['testbox']} in {entry['tree']}: {entry['state']}"
    if entry["incident"]:
        culprit = f"{entry['commit'][:12]} {entry['subject']}"
        return f"{change}: {culprit}", summary, f"/incident/{entry['incident']}"
    return change, summary, f"/comparison/{entry['comparison']}"


def _add(parent: Xml.Element, name: str, text: str | None = None, **more: str) -> Xml.Element:
    element = Xml.SubElement(parent, name, more)
    element.text = None if text is None else clean(text)
    return element
