"""The mail to the requester of a table or bisection."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from swingbot.core.mail.message import BODY_BYTES
from swingbot.core.report.mails.result import Result, ResultKernel, result_mail
from swingbot.core.text import plain
from swingbot_jobs.codec import typed
from tests.golden.remake import RESULTS, result_text, text_of
from tests.unit.test_report import HOSTILE, QUICK

DOCUMENTS = sorted(RESULTS.glob("*.in.yaml"))
ANY = st.builds(
    Result,
    id=st.just("e7"),
    status=HOSTILE,
    page=HOSTILE,
    contact=HOSTILE,
    headline=HOSTILE,
    claims=st.lists(HOSTILE, max_size=60).map(tuple),
    reason=HOSTILE,
    kernels=st.lists(
        st.builds(ResultKernel, name=HOSTILE, commit=HOSTILE, subject=HOSTILE), max_size=20
    ).map(tuple),
    private=st.booleans(),
)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_a_result_reads_as_its_golden(document: Path) -> None:
    assert result_text(document) == text_of(document).read_text(encoding="utf-8"), (
        "run `make golden` and read the diff"
    )


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_a_private_result_has_its_id_status_and_address_only(document: Path) -> None:
    result = typed(Result, yaml.safe_load(document.read_text(encoding="utf-8")))
    made = result_mail(replace(result, private=True))
    said = f"{made.subject}\n{made.body}"
    assert result.id in said and result.page in said
    for words in (*result.claims, *filter(None, [result.headline, result.reason])):
        assert words not in said
    for kernel in result.kernels:
        assert kernel.commit[:12] not in said and kernel.subject not in said


@QUICK
@given(ANY)
def test_whatever_the_facts_hold_a_result_is_narrow_and_of_printable_lines(result: Result) -> None:
    made = result_mail(result)
    assert len(made.body.encode()) <= BODY_BYTES
    assert plain.clean(made.subject) == made.subject
    for line in made.body.split("\n")[:-1]:
        assert not any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in line)
        assert plain.columns(line) <= plain.WIDTH or "://" in line, line
