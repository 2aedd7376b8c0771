"""A browser user signs in with a token, is refused what the role may not do, sees the cost of a
comparison, and queues it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from swingbot.core.access.roles import Role
from tests.asking import Serve, Site
from tests.browser import Page, browser
from tests.db.test_browser import WIDTHS, looked_at


@pytest.fixture
def page() -> Iterator[Page]:
    with browser() as found:
        yield found


def pictured(page: Page, name: str) -> None:
    """Nothing on the page is broken; with SWINGBOT_TEST_PICTURES=DIR a person can look at it."""
    looked_at(page)
    if place := os.environ.get("SWINGBOT_TEST_PICTURES"):
        for width in WIDTHS:
            page.sized(width)
            page.picture(Path(place) / f"{name}-{width}.png")


def sign_in(page: Page, site: Site, who: str, role: Role) -> None:
    token = site.web.token(who, role)["Authorization"].removeprefix("Bearer ")
    page.open(f"http://127.0.0.1:{site.web.port}/login?next=/compare")
    page.value(f"document.querySelector('input[name=key]').value = '{token}'")
    page.click("form.stack button")
    assert page.address() == "/compare"


def test_a_submitter_sees_the_cost_and_queues(serve: Serve, page: Page) -> None:
    site = serve()
    page.open(f"http://127.0.0.1:{site.web.port}/")
    page.click("main a[href='/compare']")
    pictured(page, "compare-stranger")
    page.click("main a[href^='/login']")
    pictured(page, "login")
    sign_in(page, site, "Ada Example", Role.SUBMITTER)
    pictured(page, "compare")
    page.value(
        "for (const [n, v] of [['base', 'base'], ['head', 'tip'], ['boots', '3']]) "
        "document.querySelector(`form.stack input[name=${n}]`).value = v"
    )
    page.click("form.stack button")
    assert "6 boots" in page.value("document.querySelector('section.card').innerText")
    pictured(page, "compare-cost")
    page.click("section.card button.go")
    assert page.address().startswith("/comparison/c")
    looked_at(page)
    page.open(f"http://127.0.0.1:{site.web.port}/compare")
    assert "1 of your 5 requests" in page.value("document.body.innerText")
    pictured(page, "compare-after")


def test_a_missing_role_or_wrong_token_is_explained_in_a_sentence(serve: Serve, page: Page) -> None:
    site = serve()
    sign_in(page, site, "Rea", Role.READER)
    words = page.value("document.querySelector('main').innerText")
    assert "Requesting a table requires the role submitter" in words
    assert page.value("document.querySelector('form.stack')") is None
    pictured(page, "compare-reader")
    page.open(f"http://127.0.0.1:{site.web.port}/login")
    page.value("document.querySelector('input[name=key]').value = 'guess'")
    page.click("form.stack button.go")
    assert page.value("document.querySelector('.notice').innerText").startswith(
        "This token is invalid"
    )
    assert page.failed == [f"401 http://127.0.0.1:{site.web.port}/login"]
    page.failed.clear()
    page.complaints.clear()
    pictured(page, "login-refused")


def test_a_person_finds_and_revokes_a_token(serve: Serve, page: Page) -> None:
    site = serve()
    site.web.token("Ada Example", Role.READER)
    sign_in(page, site, "Ada Example", Role.SUBMITTER)
    page.open(f"http://127.0.0.1:{site.web.port}/login")
    page.click("main a[href='/tokens']")
    pictured(page, "tokens")
    page.click("form[action$='/revoke'] button")
    assert page.address() == "/tokens"
    assert page.value("document.querySelectorAll('button.stop').length") == 1
    page.click("main a[href='/tokens?over=1']")
    assert "by Ada Example (pages)" in page.value("document.body.innerText")
    pictured(page, "tokens-over")
