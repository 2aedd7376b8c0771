"""`/docs`: the documentation that comes with the code, as pages.

A page is the file of `docs/` itself; links between the files lead to their pages, those to other
files of the repository are text. Raw HTML is shown, not interpreted.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from swingbot.core.model.lookup import NotFound

from ..http.render import Renderer

_INDEX: Final = "README"
_GLOSSARY: Final = "glossary"
# "**controller, idle system**: ..." or "**part** (of the service): ..." at the start of an item
_TERM: Final = re.compile(r"\*\*([^*]+)\*\*(?: \(([^)]*)\))?")
_SCHEME: Final = re.compile(r"[a-z]+:")


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentationPage:
    title: str
    body: Markup
    anchors: frozenset[str]


class Documentation:
    """The pages of a folder by name, the path below it without `.md`; its pictures with `.png`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.page = cache(self._page)

    @cached_property
    def files(self) -> Mapping[str, Path]:
        found = [*self._folder.rglob("*.md"), *self._folder.rglob("*.png")]
        names = (path.relative_to(self._folder).as_posix().removesuffix(".md") for path in found)
        return dict(zip(names, found, strict=True))

    def _page(self, name: str) -> DocumentationPage:
        """Raises KeyError."""
        markdown = _reader()
        tokens = markdown.parse(self.files[name].read_text("utf-8"))
        anchors = {*_number_headings(tokens), *(_mark_terms(tokens) if name == _GLOSSARY else ())}
        for token in tokens:
            token.children = [*self._linked(name, token.children)] if token.children else None
        body = Markup(markdown.renderer.render(tokens, markdown.options, {}))
        title = next((one.content for one in tokens if one.type == "inline"), name)
        return DocumentationPage(title=title, body=body, anchors=frozenset(anchors))

    def _linked(self, name: str, tokens: Sequence[Token]) -> Iterator[Token]:
        """Lead links to pages; leave out those to files that are not served."""
        kept: list[bool] = []
        for token in tokens:
            if token.type == "image":
                token.attrs["src"] = self.address(name, str(token.attrs["src"])) or ""
            if token.type == "link_open":
                target = self.address(name, str(token.attrs["href"]))
                kept.append(target is not None)
                token.attrs["href"] = target or ""
            if token.type == "link_close":
                if kept.pop():
                    yield token
            elif token.type != "link_open" or kept[-1]:
                yield token

    def address(self, name: str, link: str) -> str | None:
        """Return the address of what the page `name` links to; None for a file not served."""
        if _SCHEME.match(link) or link.startswith("#"):
            return link
        target, mark, anchor = link.partition("#")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
        path = path.removesuffix(".md")
        return address(path) + mark + anchor if path in self.files else None


def address(name: str) -> str:
    return "/docs" if name == _INDEX else f"/docs/{name}"


def _slug(text: str) -> str:
    """The fragment that GitHub and GitLab make of a heading."""
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def _number_headings(tokens: Sequence[Token]) -> Iterator[str]:
    """Give headings ids, repeated ones with a number, as GitHub does."""
    seen: dict[str, int] = {}
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open":
            parts = inline.children or ()
            slug = _slug("".join(part.content for part in parts if part.type != "image"))
            count = seen[slug] = seen.get(slug, -1) + 1
            opening.attrs["id"] = slug if not count else f"{slug}-{count}"
            yield str(opening.attrs["id"])


def _mark_terms(tokens: Sequence[Token]) -> Iterator[str]:
    """Put the anchors of its terms at the start of each item: `#part-of-the-service`."""
    for item, inline in zip(tokens, tokens[2:], strict=False):
        if item.type == "list_item_open" and inline.children is not None:
            heads = inline.content.partition(": ")[0]
            for words, more in _TERM.findall(heads):
                for word in words.split(", "):
                    anchor = _slug(f"{word} {more}".strip())
                    mark = Token("html_inline", "", 0)
                    mark.content = f'<span id="{escape(anchor)}"></span>'
                    inline.children.insert(0, mark)
                    yield anchor


def _reader() -> MarkdownIt:
    """A parser whose tables and code scroll alone, by keyboard too."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    frames = {"table_open": '<div class="wide"><table>', "table_close": "</table></div>"}
    for kind, frame in frames.items():
        markdown.add_render_rule(kind, lambda *_, frame=frame: frame)
    for kind in ("fence", "code_block"):
        markdown.add_render_rule(kind, _code)
    return markdown


def _code(renderer: object, tokens: Sequence[Token], index: int, *_: object) -> str:
    return f'<pre tabindex="0"><code>{escape(tokens[index].content)}</code></pre>'


class DocumentationPages:
    def __init__(self, renderer: Renderer, folder: Path) -> None:
        self._renderer, self._docs = renderer, Documentation(folder)

    def routes(self) -> list[Route]:
        return [Route("/docs", self._show), Route("/docs/{name:path}", self._show)]

    def _show(self, request: Request) -> Response:
        name = request.path_params.get("name", _INDEX)
        if name not in self._docs.files:
            raise NotFound(f"The documentation has no page {name[:80]!r}; /docs lists them.")
        if name.endswith(".png"):
            return FileResponse(self._docs.files[name])
        return self._renderer.page("docs.html", this=self._docs.page(name))
