"""Roles, tokens and limits, as values."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot.app.settings import SettingsError, load, shown
from swingbot.core.access import tokens
from swingbot.core.access.rates import Buckets, Rate, client_key
from swingbot.core.access.roles import PURPOSES, Person, Role, may, refusal

RATE = Rate(per_second=2.0, burst=3)


def test_each_role_may_all_that_those_before_it_may() -> None:
    order = [Role.READER, Role.SUBMITTER, Role.MODERATOR, Role.OPERATOR]
    assert order == list(Role) == list(PURPOSES)
    assert [[may(role, needs) for needs in order] for role in order] == [
        [i >= j for j in range(4)] for i in range(4)
    ]


def test_a_refusal_says_what_is_needed_and_what_there_is() -> None:
    ada = Person(who="Ada", role=Role.READER, token=2)
    assert refusal(ada, Role.READER) is None
    assert "needs the role moderator, and Ada's token has the role reader" in str(
        refusal(ada, Role.MODERATOR)
    )
    assert "sign in first at /login" in str(refusal(None, Role.READER))


@pytest.mark.parametrize("who", ["", "<script>", "a" * 65, "-", "Ada;", " ", "Ada\0", "Ada\u202e"])
def test_a_name_is_kept_beside_what_is_decided_so_it_must_be_one(who: str) -> None:
    with pytest.raises(tokens.BadToken, match="is not a valid name"):
        tokens.name_of(who)


def test_names_of_people_and_scripts_are_names() -> None:
    assert [tokens.name_of(who) for who in ("Ada  Example\n", "ci@host-3", "Łukasz", "x")] == [
        "Ada Example",
        "ci@host-3",
        "Łukasz",
        "x",
    ]


@pytest.mark.parametrize(
    ("text", "life"),
    [("12h", timedelta(hours=12)), ("90d", timedelta(days=90)), ("52w", timedelta(weeks=52))],
)
def test_lifetimes_are_hours_days_or_weeks(text: str, life: timedelta) -> None:
    assert tokens.life_of(text) == life


def test_a_lifetime_may_have_no_end() -> None:
    assert tokens.life_of("never") is None
    assert tokens.life_of(tokens.DEFAULT_LIFE) == timedelta(days=90)


@pytest.mark.parametrize("text", ["", "0d", "-1d", "90", "1y", "99999w", "٣d", "1d\n"])
def test_other_lifetimes_are_refused(text: str) -> None:
    with pytest.raises(tokens.BadToken, match="12h, 90d or 52w"):
        tokens.life_of(text)


def test_a_bucket_gives_its_burst_then_its_rate() -> None:
    buckets = Buckets(RATE)
    assert [buckets.take("a", 100.0) for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    assert buckets.take("b", 100.0) == 0.0, "another client has its own"
    assert buckets.take("a", 100.5) == 0.0
    assert buckets.take("a", 100.5) == 0.5


@given(st.lists(st.floats(min_value=0.0, max_value=3.0), max_size=60))
def test_no_pattern_of_asking_gets_more_than_burst_and_rate(pauses: list[float]) -> None:
    buckets, now, given_ = Buckets(RATE), 0.0, 0
    for pause in pauses:
        now += pause
        given_ += buckets.take("a", now) == 0.0
    assert given_ <= RATE.burst + RATE.per_second * now + 1e-6


def test_what_has_to_wait_takes_nothing() -> None:
    buckets = Buckets(RATE)
    for _ in range(100):
        buckets.take("a", 0.0)
    assert buckets.take("a", 0.5) == 0.0


def test_many_strangers_cost_no_memory() -> None:
    buckets = Buckets(RATE, remembered=10)
    for n in range(1000):
        buckets.take(f"10.0.0.{n}", 0.0)
    assert len(buckets) == 10


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("no address", "unknown"),
        ("", "unknown"),
    ],
)
def test_an_ipv6_host_is_one_client_whatever_addresses_it_takes(address: str, key: str) -> None:
    assert client_key(address) == key


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        (
            "postgresql+psycopg2://ada:secret@db.example.org/swingbot",
            "postgresql+psycopg2://ada:***@db.example.org/swingbot",
        ),
        ("postgresql://:secret@/swingbot?host=/run", "postgresql://:***@/swingbot?host=/run"),
        ("http://127.0.0.1:8010/a@b", "http://127.0.0.1:8010/a@b"),
        (5, 5),
    ],
)
def test_a_setting_is_shown_without_its_password(value: object, seen: object) -> None:
    assert shown(value) == seen


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("WEB_READ", "closed", "web.read: 'closed' is not one of open, token"),
        ("WEB_METRICS", "yes", "web.metrics: 'yes' is not one of open, token, off"),
        ("WEB_PROXIES", "10.0.0.1, proxy.example.org", "is not a valid address or network"),
        ("WEB_PATCH_KIB", "0", "web.patch_kib: 0 is not at least 1"),
        ("WEB_TESTBOX_MINUTES", "nan", "web.testbox_minutes: nan is not a finite number"),
        ("GIT_FETCH_GIB", "0", "git.fetch_gib: 0 is not greater than 0"),
    ],
)
def test_settings_of_access_that_make_no_sense_are_refused(
    key: str, value: str, sentence: str
) -> None:
    with pytest.raises(SettingsError, match=sentence):
        load(environ={f"SWINGBOT_{key}": value})
