"""A mistyped name is answered with the one that was meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot.core.text.nearest import instead_of, meant_by

TESTBOX_NAMES = ("vm-icount", "vm-kvm", "bare1")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("vm-icuont", "did you mean 'vm-icount'? "),
        ("VM-KVM", "did you mean 'vm-kvm'? "),
        ("toaster", ""),
        ("v" * 5000, ""),
        ("", ""),
    ],
)
def test_a_close_name_is_offered_and_a_far_one_is_not(typed: str, meant: str) -> None:
    assert meant_by(typed, TESTBOX_NAMES) == meant
    assert instead_of(typed, TESTBOX_NAMES) == f"{meant}choose from bare1, vm-icount, vm-kvm"


def test_the_end_that_all_names_have_is_no_likeness() -> None:
    jobs = ("anon-touch.yaml", "tbench.yaml", "hackbench.yaml")
    assert meant_by("nosuch.yaml", jobs) == ""
    assert meant_by("hackbnech.yaml", jobs) == "did you mean 'hackbench.yaml'? "


def test_without_any_name_there_is_nothing_to_choose() -> None:
    assert instead_of("bare1", ()) == "there are none yet"


@given(st.text(max_size=200), st.lists(st.text(max_size=200), max_size=8))
def test_only_names_that_exist_are_offered(typed: str, known: list[str]) -> None:
    said = meant_by(typed, known)
    assert not said or any(repr(one) in said for one in known)
