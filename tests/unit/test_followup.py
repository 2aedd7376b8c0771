"""The short mails in the thread of a first one."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import get_args

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from swingbot.core.mail.message import BODY_BYTES, PostedMail
from swingbot.core.report.mails.followup import FollowUp, Kind, follow_up
from swingbot.core.report.report_facts import Commit
from swingbot.core.text import plain
from swingbot_jobs import codec
from swingbot_jobs.codec import BadDocument, typed
from tests.golden.remake import FOLLOW_UPS, follow_up_text, text_of
from tests.unit.test_report import HOSTILE, QUICK, ROW, a_row

DOCUMENTS = sorted(FOLLOW_UPS.glob("*.in.yaml"))
COMMIT = st.builds(Commit, sha=HOSTILE, subject=HOSTILE, author=HOSTILE)
ANY = st.builds(
    FollowUp,
    kind=st.sampled_from(get_args(Kind)),
    report=HOSTILE,
    first=st.builds(
        PostedMail,
        message_id=st.one_of(HOSTILE, st.just("<a@b>")),
        subject=HOSTILE,
        references=st.lists(HOSTILE, max_size=4).map(tuple),
    ),
    culprit=COMMIT,
    row=ROW,
    rows=st.lists(ROW, max_size=12).map(tuple),
    where=HOSTILE,
    head=HOSTILE,
    fix=st.one_of(st.none(), COMMIT),
    reason=HOSTILE,
    links=st.dictionaries(HOSTILE, HOSTILE, max_size=20),
    contact=HOSTILE,
)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_a_short_mail_reads_as_its_golden(document: Path) -> None:
    assert follow_up_text(document) == text_of(document).read_text(encoding="utf-8"), (
        "run `make golden` and read the diff"
    )


def test_each_kind_of_short_mail_has_a_golden() -> None:
    assert {
        yaml.safe_load(document.read_text(encoding="utf-8"))["kind"] for document in DOCUMENTS
    } == set(get_args(Kind))
    assert {text_of(document) for document in DOCUMENTS} == set(FOLLOW_UPS.glob("*.txt"))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_a_short_mail_fits_on_two_screens_and_asks_for_no_tag(document: Path) -> None:
    text = text_of(document).read_text(encoding="utf-8")
    assert text.count("\n") <= 36
    assert "Reported-by" not in text


def the_follow_up(kind: str = "still", **changes: object) -> FollowUp:
    given = {
        "kind": kind,
        "report": "r2",
        "first": PostedMail(
            message_id="<i1.first.1@bot.example.org>",
            subject="[t:b] x",
            references=("<p@example.org>",),
        ),
        "culprit": Commit(sha="a" * 40, subject="mm: x", author="A <a@example.org>"),
        "row": a_row(),
        "contact": "Otto",
    }
    return FollowUp(**(given | changes))  # type: ignore[arg-type]  # kinds are checked by the codec


@pytest.mark.parametrize("kind", get_args(Kind))
def test_a_short_mail_answers_our_first_one_in_its_thread(kind: str) -> None:
    made = follow_up(the_follow_up(kind))
    assert made.subject == "Re: [t:b] x"
    assert made.in_reply_to == "<i1.first.1@bot.example.org>"
    assert made.references == ("<p@example.org>", "<i1.first.1@bot.example.org>")


def test_a_retraction_says_so_before_anything_else() -> None:
    assert follow_up(the_follow_up("retraction")).body.startswith(
        "We retract our report of program.metric 10.0% worse."
    )


@QUICK
@given(ANY)
def test_whatever_the_facts_hold_a_short_mail_is_narrow_and_of_printable_lines(
    facts: FollowUp,
) -> None:
    made = follow_up(facts)
    assert len(made.body.encode()) <= BODY_BYTES
    assert plain.clean(made.subject) == made.subject
    for line in made.body.split("\n")[:-1]:
        assert not any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in line)
        assert plain.columns(line) <= plain.WIDTH or "://" in line, line


@QUICK
@given(ANY)
def test_a_follow_up_survives_json(facts: FollowUp) -> None:
    assert typed(FollowUp, json.loads(json.dumps(codec.plain(facts)))) == facts


def test_a_follow_up_to_nothing_or_of_no_kind_is_refused() -> None:
    good = codec.plain(the_follow_up())
    with pytest.raises(BadDocument, match=r"follow-up.kind: 'answer' is not one of"):
        typed(FollowUp, {**good, "kind": "answer"}, "follow-up")
    with pytest.raises(BadDocument, match=r"follow-up.first: None is not a mapping"):
        typed(FollowUp, {**good, "first": None}, "follow-up")
