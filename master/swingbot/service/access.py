"""Give and revoke tokens, sign in and out, and log it."""

from __future__ import annotations

from typing import Final

from swingbot.core.access.roles import Person, RequestKey, Role, may
from swingbot.core.model.lookup import NotFound
from swingbot.service.limits import ACCESS_EVENTS, KEPT_ANSWERS, SESSIONS
from swingbot.service.ports import RequestError
from swingbot.service.ports.access import Access, AccessAct, KeptAnswer, NewToken

# Strangers can cause refused sign-ins, so their log entries expire.
REFUSAL_DAYS: Final = 30


class CarriedOut(Exception):
    """The request was carried out before, and its answer is lost; the message says so."""


class NotYourToken(Exception):
    """The person may not revoke this token; the message says why."""


def create_token(access: Access, new: NewToken) -> int:
    """Store a new token and return its number."""
    number = access.add_token(new)
    vouches = ", vouches for its commits" if new.vouches else ""
    trees = f", trees {' '.join(new.trees)}" if new.trees is not None else ""
    groups = f", groups {' '.join(new.groups)}" if new.groups is not None else ""
    levels = "" if new.levels else ", changes only"
    more = f"{trees}{groups}{levels}{vouches}"
    access.note("create", new.by, number, f"for {new.who}, {new.role}{more}")
    return number


def revoke_token(access: Access, number: int, by: str) -> str:
    """End a token and its sessions; return the owner's name. Raises NotFound, RequestError."""
    owner = access.revoke(number, by)
    if owner is None:
        if access.owner_of(number) is None:
            raise NotFound(f"token {number} does not exist; `swingbot token list` lists all tokens")
        raise RequestError(f"token {number} is already revoked")
    access.note("revoke", by, number, f"of {owner}")
    return owner


def revoke_over_the_web(access: Access, number: int, person: Person) -> str:
    """Revoke a token for an operator, or for its owner if it has no higher role than the token in
    use, and that is not for few trees: a script's token that leaks must not end those of its owner.

    Raises NotFound, RequestError, NotYourToken.
    """
    owned = access.owner_of(number)
    if person.role is not Role.OPERATOR and owned is not None:
        owner, role = owned
        if owner != person.who:
            raise NotYourToken(
                f"token {number} is not yours: only its owner or an operator may revoke it"
            )
        if not may(person.role, role):
            raise NotYourToken(
                f"token {number} has the role {role}, the one in use {person.role}:"
                f" sign in with a token of the role {role}"
            )
        if person.trees is not None and number != person.token:
            raise NotYourToken(
                f"the token in use is only for requests of {', '.join(person.trees)}, and revokes"
                " itself alone: sign in with one of all trees"
            )
    return revoke_token(access, number, f"{person.who} (pages)")


def sign_in(access: Access, person: Person, session: str, seconds: int, where: str) -> None:
    access.begin_session(person, session, seconds, SESSIONS)
    note_use(access, "sign in", person, f"from {where}")


def sign_out(access: Access, session: str) -> None:
    person = access.end_session(session)
    if person is not None:
        _log(access, "sign out", person.who, person.token)


def refuse_sign_in(access: Access, where: str) -> None:
    access.forget_refusals(REFUSAL_DAYS)
    _log(access, "refused", "somebody", detail=f"from {where}")


def _log(
    access: Access, act: AccessAct, who: str, token: int | None = None, detail: str | None = None
) -> None:
    """Add an entry to the log, and delete the oldest of its kind."""
    access.note(act, who, token, detail)
    access.keep_latest(act, token, ACCESS_EVENTS)


def note_use(access: Access, act: AccessAct, person: Person, detail: str) -> None:
    """Log what a person did with their token."""
    _log(access, act, person.who, person.token, detail)


def note_extension(access: Access, person: Person, table: str, testbox_seconds: float) -> None:
    """Charge the person with more boots of `table`. Raises CarriedOut."""
    if person.once is not None and not access.carry_out(person.token, person.once):
        raise CarriedOut(
            f"{table} was changed by this request before, and the answer was lost: nothing was"
            f" done again; see `swingbot show {table}`"
        )
    access.note_extension(person, table, testbox_seconds)
    note_use(access, "compare", person, table)


def note_request(access: Access, person: Person, id: str, testbox_seconds: float) -> None:
    """Record the requester of a table or bisection; asked again, it is the same one."""
    if person.once is not None:
        access.carry_out(person.token, person.once)
    access.note_request(person, id, testbox_seconds)
    note_use(access, "compare", person, id)


def keep_answer(access: Access, token: int, once: RequestKey, answer: KeptAnswer) -> None:
    """Record the answer to a request that was carried out."""
    access.keep_answer(token, once, answer, KEPT_ANSWERS)
