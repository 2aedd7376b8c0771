"""Renders dicts as pages: Jinja with autoescape, and the context that every page has."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import jinja2
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from swingbot.core.access.roles import Person
from swingbot.core.table.verdict import LEGEND

from ..ports import PageSettings
from .cell_labels import label_cells
from .filters import FILTERS

TEMPLATES = Path(__file__).parents[1] / "templates"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """The signed-in person, if any, and the address to which signing in returns."""

    person: Person | None
    here: str


# Set for each request; None where a page is rendered outside of one.
READER: Final[ContextVar[Reader | None]] = ContextVar("reader", default=None)
_REFRESH_SECONDS = 10  # reload interval of a page about something in progress


def is_json(request: Request) -> bool:
    return request.url.path.endswith(".json")


def bb_build_url(buildbot: str, builder: int | None, number: int | None) -> str | None:
    """Return the Buildbot page of a dispatch; None before there is one or without Buildbot pages.

    `buildbot` is the address of Buildbot's pages.
    """
    return (
        f"{buildbot}#/builders/{builder}/builds/{number}"
        if buildbot and builder is not None and number is not None
        else None
    )


def metric_page(tree: str, testbox: str, unit_job: str, metric: str) -> str:
    """Return the address of the page of a metric; names may contain any character."""
    return "/metric/" + "/".join(quote(one, safe="") for one in (tree, testbox, unit_job, metric))


def term(words: str, entry: str = "") -> Markup:
    """Words of a page that lead to their entry in the glossary; `entry`: if it has another name."""
    target = entry or words.replace(" ", "-")
    return Markup('<a class="term" href="/docs/glossary#{}">{}</a>').format(target, words)


class Renderer:
    def __init__(self, settings: PageSettings) -> None:
        loader = jinja2.FileSystemLoader(TEMPLATES)
        self._jinja = jinja2.Environment(
            loader=loader,
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._jinja.filters |= FILTERS | {"path": lambda text: quote(str(text), safe="")}
        buildbot = settings.buildbot_url
        self._jinja.globals |= {
            "base_url": settings.web_url,
            "buildbot": buildbot,
            "bb_build_url": lambda builder, number: bb_build_url(buildbot, builder, number),
            "metric_page": metric_page,
            "term": term,
            "legend": LEGEND,
            "reader": READER.get,
        }

    def page(
        self, template: str, *, status: int = 200, refresh: Request | None = None, **context: Any
    ) -> Response:
        """Return a page. With `refresh`, it reloads itself unless that request asks it not to."""
        reload = _reloading(refresh) if refresh is not None else {}
        headers = {"cache-control": "no-cache"}
        if seconds := reload.get("refresh"):
            headers["refresh"] = str(seconds)
        text = self._jinja.get_template(template).render(
            **{"refresh": None, "reload_link": None, **reload, **context}
        )
        return HTMLResponse(label_cells(text), status_code=status, headers=headers)


def _reloading(request: Request) -> dict[str, Any]:
    """Seconds until the page reloads (None: it was asked not to), and the link to change that."""
    off = request.query_params.get("reload") == "off"
    url = request.url
    other = url.remove_query_params("reload") if off else url.include_query_params(reload="off")
    return {"refresh": None if off else _REFRESH_SECONDS, "reload_link": f"?{other.query}"}
