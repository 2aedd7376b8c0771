"""The codec of documents: what is written is read back equal, and what does not fit is named."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot_jobs.codec import (
    BadDocument,
    Count,
    Hidden,
    Named,
    Required,
    Sparse,
    matches,
    plain,
    typed,
)
from swingbot_jobs.yaml_lines import read_documents


@dataclass(frozen=True, kw_only=True)
class Part:
    klass: Annotated[str, Named("class")]
    n: Count
    level: float | None = None
    warmup: Sparse[int] = 0


@dataclass(frozen=True, kw_only=True)
class Whole:
    name: Required[Annotated[str, matches(re.compile("[a-z]+"), "a name")]] = "x"
    parts: tuple[Part, ...]
    pair: tuple[float, float] | None = None
    by_name: Mapping[str, Part] = field(default_factory=dict)
    kind: Literal["one", "two"] = "one"
    secret: Hidden[int] = 3

    def __post_init__(self) -> None:
        if len(self.parts) > 3:
            raise ValueError("more than three parts")


FINITE = st.floats(allow_nan=False, allow_infinity=False)
PART = st.builds(
    Part, klass=st.text(), n=st.integers(0), level=st.none() | FINITE, warmup=st.integers()
)


@given(
    st.builds(
        Whole,
        name=st.from_regex("[a-z]+", fullmatch=True),
        parts=st.lists(PART, max_size=3).map(tuple),
        pair=st.none() | st.tuples(FINITE, FINITE),
        by_name=st.dictionaries(st.text(), PART),
        kind=st.sampled_from(["one", "two"]),
    )
)
def test_what_is_written_is_read_back_equal(whole: Whole) -> None:
    assert typed(Whole, json.loads(json.dumps(plain(whole)))) == whole


def test_defaults_and_hidden_fields_are_left_out_and_no_number_is_infinite() -> None:
    assert plain(Part(klass="a", n=1, level=math.inf)) == {"class": "a", "n": 1, "level": None}
    assert "secret" not in plain(Whole(parts=()))
    assert typed(Whole, {"name": "x", "parts": [], "secret": 4}).secret == 4


PARTS: dict[str, Any] = {"name": "x", "parts": [{"class": "a", "n": 1}]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colour": 1}, "doc: key 'colour' is unknown here; known are name"),
        ({"name": "A"}, "doc.name: 'A' is not a name"),
        ({"name": 3}, "doc.name: 3 is not a string"),
        ({"kind": "three"}, "doc.kind: 'three' is not one of one, two"),
        ({"pair": [1]}, r"doc.pair: \[1\] is not a list of 2"),
        ({"pair": [1, "2"]}, r"doc.pair\[1\]: '2' is not a finite number"),
        ({"parts": [{"class": "a"}]}, r"doc.parts\[0\].n: is missing"),
        ({"parts": [{"class": "a", "n": -1}]}, r"doc.parts\[0\].n: -1 is not a count"),
        ({"parts": [{"class": "a", "n": True}]}, r"doc.parts\[0\].n: True is not a whole number"),
        ({"by_name": {"b": []}}, r"doc.by_name.b: \[\] is not a mapping"),
        ({"parts": PARTS["parts"] * 4}, "doc: more than three parts"),
    ],
)
def test_the_error_names_the_key(change: dict[str, Any], message: str) -> None:
    with pytest.raises(BadDocument, match=f"^{message}"):
        typed(Whole, PARTS | change, "doc")


def test_a_required_key_must_be_there_though_it_has_a_default() -> None:
    with pytest.raises(BadDocument, match="doc.name: is missing"):
        typed(Whole, {"parts": []}, "doc")


def test_unknown_keys_are_ignored_only_where_the_reader_says_so() -> None:
    more = {"name": "x", "parts": [{"class": "a", "n": 1, "more": 2}], "more": 3}
    assert typed(Whole, more, ignore_unknown=True) == typed(Whole, PARTS)


YAML = """\
name: x
pair: [1, 2.5]
parts:
  - class: "7"
    n: 3
  - class: 8
    n: 4
    level: {level}
"""


def test_a_file_with_lines_is_read_by_its_types_and_errors_name_the_innermost_line() -> None:
    def read(level: str) -> Whole:
        [document] = read_documents(YAML.replace("{level}", level), "x.yaml")
        return typed(Whole, document)

    parts = (Part(klass="7", n=3), Part(klass="8", n=4, level=9.0))
    assert read("9") == Whole(name="x", pair=(1.0, 2.5), parts=parts)
    for wrong in ("high", "'9'"):
        with pytest.raises(
            BadDocument, match=r"^x.yaml:8: parts\[1\].level: '\w+' is not a finite"
        ):
            read(wrong)
    with pytest.raises(BadDocument, match=r"^x.yaml:9: parts\[1\]: key 'more' is unknown here"):
        read("9\n    more: 1")
    with pytest.raises(BadDocument, match=r"^x.yaml:8: parts\[1\].level: has no value"):
        read("")


def test_a_whole_number_beyond_every_float_is_refused() -> None:
    with pytest.raises(BadDocument, match="level: 1000+ is not a finite number"):
        typed(Part, {"class": "a", "n": 1, "level": 10**400})
