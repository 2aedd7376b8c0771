"""What is promised of tokens, sessions and quotas."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, timedelta

import pytest

from swingbot.core.access.quota import QuotaUsage
from swingbot.core.access.roles import Person, RequestKey, Role, tree_refusal
from swingbot.core.access.tokens import digest
from swingbot.core.model.bisection import WantedBoot
from swingbot.core.model.lookup import NotFound
from swingbot.service.access import (
    CarriedOut,
    NotYourToken,
    create_token,
    keep_answer,
    note_extension,
    note_request,
    revoke_over_the_web,
    revoke_token,
    sign_in,
    sign_out,
)
from swingbot.service.ports import RequestError, Transaction
from swingbot.service.ports.access import KeptAnswer, NewToken
from tests.contract.store.world import (
    REFUSED,
    Store,
    a_bisection,
    a_boot,
    a_build,
    a_comparison,
    a_lab,
)

TOKEN = digest("swingbot_" + "t" * 43)
SESSION = digest("a session")
DAY = 86400.0


def make(tx: Transaction, life: timedelta | None = None, of: str = TOKEN) -> Person:
    new = NewToken(who="Ada", role=Role.MODERATOR, digest=of, life=life, by="root@host")
    return Person(who="Ada", role=Role.MODERATOR, token=create_token(tx.access, new))


def test_a_token_is_found_by_its_digest_until_it_is_revoked(store: Store) -> None:
    with store.transaction() as tx:
        person = make(tx)
        assert tx.access.holder(TOKEN) == person
        assert "Ada" in tx.access.holders()
        assert tx.access.holder(digest("another")) is None
        assert revoke_token(tx.access, person.token, by="root@host") == "Ada"
        assert tx.access.holder(TOKEN) is None and "Ada" not in tx.access.holders()
        with pytest.raises(RequestError, match=f"token {person.token} is already revoked"):
            revoke_token(tx.access, person.token, by="root@host")
        with pytest.raises(NotFound, match="token 9999 does not exist"):
            revoke_token(tx.access, 9999, by="root@host")


def test_what_has_ended_says_when_and_by_whom(store: Store) -> None:
    with store.transaction() as tx:
        person = make(tx, life=timedelta(days=1))
        assert tx.access.ended(TOKEN) is None and tx.access.ended(digest("another")) is None
    store.pass_time(DAY + 1)
    with store.transaction() as tx:
        ended = tx.access.ended(TOKEN)
        assert ended is not None and (ended.number, ended.who) == (person.token, "Ada")
        assert ended.revoked_by is None
        assert f"Token {person.token} of Ada expired on {ended.at.astimezone(UTC):%Y-%m-%d}" in str(
            ended
        )
        assert "ask an operator for another one" in str(ended)
        revoke_token(tx.access, person.token, by="root@host")
        revoked = tx.access.ended(TOKEN)
        assert revoked is not None and revoked.at > ended.at
        assert "was revoked" in str(revoked) and "by root@host" in str(revoked)


def test_who_may_revoke_a_token_over_the_web(store: Store) -> None:
    with store.transaction() as tx:
        ada = make(tx)
        bob = replace(ada, who="Bob", token=99)
        with pytest.raises(NotYourToken, match="is not yours"):
            revoke_over_the_web(tx.access, ada.token, bob)
        script = replace(ada, role=Role.READER, token=98)
        with pytest.raises(NotYourToken, match="the one in use reader"):
            revoke_over_the_web(tx.access, ada.token, script)
        few = replace(ada, token=98, trees=("mm",))
        with pytest.raises(NotYourToken, match="only for requests of mm"):
            revoke_over_the_web(tx.access, ada.token, few)
        with pytest.raises(NotFound, match="token 9999 does not exist"):
            revoke_over_the_web(tx.access, 9999, bob)
        assert tx.access.holder(TOKEN) == ada
        with pytest.raises(NotYourToken, match="the one in use reader"):
            revoke_over_the_web(tx.access, ada.token, replace(ada, role=Role.READER, token=98))
        assert revoke_over_the_web(tx.access, ada.token, replace(ada, token=99)) == "Ada"
        assert tx.access.holder(TOKEN) is None
        key = tx.access.holder(None)
        assert key is not None
        revoke_over_the_web(tx.access, key.token, replace(bob, role=Role.OPERATOR))
        assert tx.access.holder(None) is None


def test_a_token_keeps_its_trees_and_only_a_submitter_has_some(store: Store) -> None:
    new = NewToken(who="ci", role=Role.SUBMITTER, digest=TOKEN, trees=("mm", "net"), by="root@host")
    with store.transaction() as tx:
        create_token(tx.access, new)
        person = tx.access.holder(TOKEN)
        assert person is not None and person.trees == ("mm", "net")
        sign_in(tx.access, person, SESSION, 3600, "192.0.2.1")
        assert tx.access.session_holder(SESSION) == person
        assert tree_refusal(person, "mm") is None
        assert "only for requests of mm, net, not of tip" in str(tree_refusal(person, "tip"))


def test_a_token_vouches_for_what_it_was_the_first_to_send(store: Store) -> None:
    with store.transaction() as tx:
        ada = make(tx)
        new = NewToken(who="Bob", role=Role.SUBMITTER, digest=SESSION, vouches=True, by="root@host")
        create_token(tx.access, new)
        bob = tx.access.holder(SESSION)
        assert bob is not None and bob.vouches and not ada.vouches
        sign_in(tx.access, bob, digest("another"), 3600, "192.0.2.1")
        assert tx.access.session_holder(digest("another")) == bob
        own, other = ["a" * 40, "b" * 40], ["b" * 40, "c" * 40]
        tx.variants.note_sent(bob.token, own)
        tx.variants.note_sent(bob.token, own)
        tx.variants.note_sent(ada.token, other)
        assert tx.variants.sent_by(bob.token, own + other) == set(own)
        assert tx.variants.sent_by(ada.token, own + other) == {"c" * 40}
        assert tx.variants.sent_by(bob.token, []) == set()


def test_a_digest_is_that_of_one_token(store: Store) -> None:
    with store.transaction() as tx:
        make(tx)
    with pytest.raises(REFUSED), store.transaction() as tx:
        make(tx)


def test_a_token_that_has_expired_is_good_no_more_and_neither_are_its_sessions(
    store: Store,
) -> None:
    with store.transaction() as tx:
        person = make(tx, life=timedelta(days=1))
        sign_in(tx.access, person, SESSION, round(3 * DAY), "192.0.2.1")
        assert tx.access.holder(TOKEN) == tx.access.session_holder(SESSION) == person
    store.pass_time(DAY + 1)
    with store.transaction() as tx:
        assert tx.access.holder(TOKEN) is None and tx.access.session_holder(SESSION) is None


def test_a_session_ends_by_time_by_hand_and_with_its_token(store: Store) -> None:
    with store.transaction() as tx:
        person = make(tx)
        sign_in(tx.access, person, SESSION, 3600, "192.0.2.1")
        assert tx.access.session_holder(SESSION) == person
        assert tx.access.session_holder(digest("another")) is None
    store.pass_time(3601)
    with store.transaction() as tx:
        assert tx.access.session_holder(SESSION) is None
        for session in ("second", "third"):
            sign_in(tx.access, person, digest(session), 3600, "192.0.2.1")
        sign_out(tx.access, digest("second"))
        sign_out(tx.access, digest("second"))
        assert tx.access.session_holder(digest("second")) is None
        assert tx.access.session_holder(digest("third")) == person
        revoke_token(tx.access, person.token, by="root@host")
        assert tx.access.session_holder(digest("third")) is None


def test_the_operators_key_is_a_token_that_can_be_revoked(store: Store) -> None:
    with store.transaction() as tx:
        person = tx.access.holder(None)
        assert person is not None and (person.who, person.role) == ("operator", Role.OPERATOR)
        revoke_token(tx.access, person.token, by="root@host")
        assert tx.access.holder(None) is None


def test_a_quota_counts_open_tables_once_and_testbox_time_for_a_day(store: Store) -> None:
    with store.transaction() as tx:
        person, number = make(tx), a_comparison(tx, a_lab(tx))
        for seconds in (600.0, 900.0):  # a repeated request costs nothing more
            note_request(tx.access, person, f"c{number}", seconds)
        one = QuotaUsage(testbox_seconds=600.0, daily_requests=1)
        assert tx.access.used("Ada") == replace(one, open_requests=1)
        assert tx.access.used("Bob") == QuotaUsage()
        tx.comparisons.set_status(number, "done")
        assert tx.access.used("Ada") == one
    store.pass_time(DAY + 1)
    with store.transaction() as tx:
        assert tx.access.used("Ada") == QuotaUsage()


def test_who_asked_is_known_with_what_it_cost(store: Store) -> None:
    with store.transaction() as tx:
        person = make(tx)
        number = a_comparison(tx, a_lab(tx))
        assert tx.access.askers(f"c{number}") == {}
        tx.access.note_request(person, f"c{number}", 60.0)
        tx.access.note_request(replace(person, who="Bob"), f"c{number}", 0.0)
        tx.access.note_request(person, f"c{number}", 0.0)
        assert tx.access.askers(f"c{number}") == {"Ada": 60.0, "Bob": 0.0}


def test_more_of_a_table_is_paid_for_in_addition_from_then_on(store: Store) -> None:
    with store.transaction() as tx:
        person, number = make(tx), a_comparison(tx, a_lab(tx))
        tx.access.note_request(person, f"c{number}", 60.0)
    store.pass_time(DAY + 1)
    with store.transaction() as tx:
        tx.access.note_extension(person, f"c{number}", 30.0)
        tx.access.note_extension(replace(person, who="Bob"), f"c{number}", 5.0)
        assert tx.access.askers(f"c{number}") == {"Ada": 90.0, "Bob": 5.0}
        assert tx.access.used("Ada").testbox_seconds == 90.0


def test_a_bisection_costs_its_estimate_or_what_it_took_once_that_is_more(store: Store) -> None:
    with store.transaction() as tx:
        person, lab = make(tx), a_lab(tx)
        number = a_bisection(tx, lab)
        id = f"b{number}"
        for seconds in (30.0, 90.0):  # a repeated request costs nothing more
            note_request(tx.access, person, id, seconds)
        note_request(tx.access, replace(person, who="Bob"), id, 0.0)
        assert tx.access.askers(id) == {"Ada": 30.0, "Bob": 0.0}
        one = QuotaUsage(testbox_seconds=30.0, daily_requests=1)
        assert tx.access.used("Ada") == replace(one, open_requests=1)
    for k, charged in enumerate((30.0, 40.0)):  # each boot takes 20 s
        if not k:
            a_build(store, lab)
        boot = a_boot(store, lab, k=k, series=id)
        with store.transaction() as tx:
            tx.bisections.add_want(number, WantedBoot(0, k, "ends"))
            tx.bisections.add_observation(number, 0, k, boot, (1.0,), None)
            assert tx.access.used("Ada").testbox_seconds == charged
            assert tx.access.used("Bob").testbox_seconds == 0.0
    with store.transaction() as tx:
        tx.bisections.conclude(number, "cancelled", {}, None)
        assert tx.access.used("Ada").open_requests == 0


def test_what_a_bisection_causes_is_charged_to_who_queued_it(store: Store) -> None:
    with store.transaction() as tx:
        person, lab = make(tx), a_lab(tx)
        parent, child = (f"b{a_bisection(tx, lab, request_key=key)}" for key in ("p", "c"))
        tx.access.note_request(person, parent, 30.0)
        tx.access.note_request(replace(person, who="Bob"), parent, 0.0)
        for _ in range(2):
            tx.access.pass_on(parent, child, 12.0)
        assert tx.access.askers(child) == {"Ada": 12.0, "Bob": 0.0}
        assert tx.access.used("Ada").testbox_seconds == 42.0


def test_a_request_with_a_key_is_carried_out_once_and_its_answer_kept(store: Store) -> None:
    one, two = (RequestKey(key=key, digest=digest(key)) for key in ("one", "two"))
    answer = KeptAnswer(status=201, location="/comparison/c1", body='{"id": "c1"}')
    with store.transaction() as tx:
        person, other = replace(make(tx), once=one), make(tx, of=digest("other"))
        own = person.token
        number = a_comparison(tx, a_lab(tx))
        for _ in range(2):  # the same table, so asking again is harmless
            note_request(tx.access, person, f"c{number}", 60.0)
        assert tx.access.kept_answer(own, "one") == (one.digest, None)
        assert tx.access.kept_answer(other.token, "one") is None
        with pytest.raises(CarriedOut, match=f"c{number} was changed by this request before"):
            note_extension(tx.access, person, f"c{number}", 60.0)
        note_extension(tx.access, replace(person, once=two), f"c{number}", 60.0)
        keep_answer(tx.access, own, one, answer)
        assert tx.access.kept_answer(own, "one") == (one.digest, answer)
        assert not tx.access.carry_out(own, one) and tx.access.carry_out(other.token, one)


def test_only_a_tokens_latest_answers_are_kept(store: Store) -> None:
    answer = KeptAnswer(status=200, location=None, body="{}")
    keys = [RequestKey(key=f"key {n}", digest=digest("x")) for n in range(5)]
    with store.transaction() as tx:
        own, other = make(tx).token, make(tx, of=digest("other")).token
        for key in keys:
            tx.access.keep_answer(own, key, answer, most=3)
        tx.access.keep_answer(other, keys[0], answer, most=3)
        kept = [key for key in keys if tx.access.kept_answer(own, key.key) is not None]
        assert len(kept) == 3 and keys[-1] in kept
        assert tx.access.kept_answer(other, "key 0") is not None
