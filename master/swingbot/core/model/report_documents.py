"""Reports, their classes, and what waits for a person. `documents.py` has the rules."""

from __future__ import annotations

from typing import Any, TypedDict


class Class(TypedDict):
    """A class of reports: `swingbot report classes` prints it with its record."""

    testbox: str
    metric: str  # headline metric
    gates: list[str]  # gates that passed


OfAClass = TypedDict("OfAClass", {"class": Class | None})  # its class of reports


class RecordOfAClass(TypedDict):
    """`swingbot report classes`, and `classes` in `/moderation.json`."""

    testbox: str
    gates: list[str]  # gates that passed
    metric: str
    words: str
    reports: int  # first mails of the class
    released: int  # by a person
    dropped: int  # by a person
    earned: bool  # it leaves by itself where `mail.release` is `earned`
    last: str | None  # id of the latest


class LineOfAReport(TypedDict):
    id: str
    incident: str | None
    message_id: str
    to: list[str]
    cc: list[str]
    subject: str  # subject of the mail
    created_at: str
    sent_at: str | None
    size: int | None
    error: str | None
    kind: str  # `first`, `still`, `update`, `fixed`, `retraction`, `digest`, `alert` or `result`
    revision: int  # from 1
    state: str  # `draft`, `held`, `queued`, `sending`, `sent`, `unknown` or `dropped`


class AddressedKeys(OfAClass):
    lists: list[str]
    left_out: list[dict[str, Any]]
    commit_only: list[str]
    dry_run: bool
    restricted: str | None  # why it goes to mail.to alone although there is no dry run
    would_to: list[str]  # recipients without the dry run
    would_cc: list[str]  # the same for copies
    reason: str | None  # why it is where it is
    next_try: str | None  # time
    acts: list[dict[str, Any]]  # decisions of people: `act`, `who`, `why`, `was`, `at`


class Report(LineOfAReport, AddressedKeys):
    body: str  # text of the mail
    tries: int | None  # how often it was tried; null: not in the outbox yet
    mail: str | None  # the whole message once it is in the outbox; null for a `result`
    request: str | None  # of a `result`: the table or bisection
    evidence: dict[str, str]  # by gate: `pass`, `fail`, `not run` or `running`


class MailSwitch(TypedDict):
    stopped: bool  # no mail leaves
    who: str | None  # who stopped it
    why: str | None  # reason
    at: str | None  # time
    sending: list[str]  # ids of reports being handed over


class Mail(LineOfAReport, AddressedKeys):
    tries: int | None  # how often it was tried


class Moderation(TypedDict):
    """`/moderation.json`, for moderators."""

    switch: MailSwitch  # whether mail leaves
    held: list[dict[str, Any]]  # reports that wait for a person, with `mail` and `gates`
    drafts: list[dict[str, Any]]  # improvements that are kept
    waiting: int  # how many wait
    classes: list[RecordOfAClass]  # with their records
    settings: dict[str, Any]  # `release`, `dry_run`, `stopped_by_setting`


class Outbox(TypedDict):
    """`/outbox.json`, for moderators."""

    switch: MailSwitch  # whether mail leaves
    open: list[Mail]  # on their way
    over: list[Mail]  # sent or dropped, latest first
    settings: dict[str, Any]  # `release`, `dry_run`, `stopped_by_setting`


class Recipients(TypedDict):
    to: list[str]
    cc: list[str]
    lists: list[str]
    left_out: list[dict[str, Any]]
    commit_only: list[str]
    dry_run: bool
    commit: str
    really_to: list[str]  # who would get it now
    unknown: str | None  # why maintainers are not known
