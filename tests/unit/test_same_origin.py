"""Which pages may talk to Buildbot's own pages from a browser."""

from __future__ import annotations

import socket

import pytest
from buildbot.www import service
from twisted.web.test.requesthelper import DummyRequest

from swingbot.adapters.buildbot import same_origin
from swingbot.adapters.buildbot.same_origin import is_own

URL = "https://lab.example/buildbot/"


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("https://lab.example", "127.0.0.1:8011"),  # a proxy that keeps its own Host
        ("HTTPS://LAB.example", "lab.example"),
        ("http://127.0.0.1:8011", "127.0.0.1:8011"),
        ("http://[::1]:8011", "[::1]:8011"),
        ("http://localhost:8011", "localhost:8011"),
        (f"http://{socket.gethostname()}:8011", f"{socket.gethostname()}:8011"),
        ("http://lab.example:8011", "LAB.example:8011"),
    ],
)
def test_pages_of_this_service_are_own(origin: str, host: str) -> None:
    assert is_own(origin, host, URL)


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("https://evil.example", "lab.example"),
        ("null", "127.0.0.1:8011"),
        ("null", "null"),
        ("http://127.0.0.1:8010", "127.0.0.1:8011"),
        ("http://lab.example.evil.example", "lab.example.evil.example"),
        ("http://evil.example:8011", "evil.example:8011"),  # its name leads to this host
        ("http://[::1", "[::1"),
        ("", ""),
    ],
)
def test_pages_of_other_sites_are_not(origin: str, host: str) -> None:
    assert not is_own(origin, host, URL)


def test_a_page_of_another_site_is_refused_before_the_page_is_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("getResourceFor", "requestFactory"):  # restored after the test
        monkeypatch.setattr(service.BuildbotSite, name, getattr(service.BuildbotSite, name))
    same_origin.protect("http://here.example:9421/")
    request = DummyRequest([b"auth", b"login"])
    request.requestHeaders.setRawHeaders("origin", ["http://evil.example"])
    request.requestHeaders.setRawHeaders("host", ["here.example:9421"])
    # a site on which looking for any page fails
    service.BuildbotSite.getResourceFor(None, request).render(request)
    assert request.responseCode == 403
    request.requestHeaders.setRawHeaders("origin", ["http://here.example:9421"])
    with pytest.raises(AttributeError):
        service.BuildbotSite.getResourceFor(None, request)
