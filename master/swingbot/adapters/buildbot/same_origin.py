"""Keep pages of other sites away from Buildbot's own pages.

Buildbot 4.3.0 checks the origin of a request for `/api` alone, so that any page that an operator
visits could read the events of `/ws`. Scripts can read its session cookie, and browsers send it
with requests of other sites.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import Any
from urllib.parse import urlsplit

from buildbot.www import service
from twisted.web import pages, server

_answer = service.BuildbotSite.getResourceFor


def protect(url: str) -> None:
    """Refuse requests of other origins than `url` and addresses and names of this host, and
    restrict the session cookie; a later call replaces an earlier one.
    """

    class Request(server.Request):
        def addCookie(self, k: Any, v: Any, *others: Any, **named: Any) -> None:
            # "strict" would sign out who follows a link from a mail: Buildbot starts a new session
            # for a request without a cookie
            restricted: dict[str, Any] = {"httpOnly": True, "sameSite": b"lax"}
            if urlsplit(url).scheme == "https":  # TLS ends at a proxy
                restricted["secure"] = True
            add: Any = super().addCookie
            add(k, v, *others, **named | restricted)

    def resource_for(site: Any, request: Any) -> Any:
        origin, host = request.getHeader("origin"), request.getHeader("host")
        if origin is None or is_own(origin, host or "", url):
            return _answer(site, request)
        # before the page is looked for: looking fails for /auth/login without a login
        request.site, request.sitepath = site, []
        request.responseHeaders.removeHeader("Server")
        return pages.forbidden(message="The request comes from a page of another site.")

    service.BuildbotSite.requestFactory = Request
    service.BuildbotSite.getResourceFor = resource_for


def is_own(origin: str, host: str, url: str) -> bool:
    """Return True if `origin` is that of `url`, or that of a request for `host`, an address or name
    of this host. A browser sends no `Origin` if a user opens a page.
    """
    if origin.lower() == origin_of(url):
        return True
    try:
        parts = urlsplit(origin.lower())
        name = parts.hostname or ""
    except ValueError:
        return False
    # any other name may have been pointed at this host by its owner (DNS rebinding)
    return parts.netloc == host.lower() and (
        _is_address(name)
        or name in {"localhost", socket.gethostname().lower(), urlsplit(url).hostname}
    )


def origin_of(url: str) -> str:
    """Return the value of `Origin` in requests of a page at `url`."""
    parts = urlsplit(url.lower())
    return f"{parts.scheme}://{parts.netloc}"


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
