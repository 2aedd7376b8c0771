"""Names of kernel configurations, alone and with fragments."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot_jobs.contract.kconfig import (
    Kconfigs,
    NoKconfig,
    Over,
    joined,
    load_kconfigs,
    optional_of,
    parts_of,
)
from swingbot_worker.kbuild import accepted

KCONFIGS = Kconfigs(
    {"tiny": "CONFIG_A=y\n", "huge": "CONFIG_A=n\n"},
    {"trace": "CONFIG_T=y\n", "align64": "CONFIG_L=y\n"},
)
SHIPPED = Path(__file__).parents[2] / "workers" / "kconfig"


def test_a_configuration_without_fragments_has_the_text_it_always_had() -> None:
    assert KCONFIGS["tiny"] == "CONFIG_A=y\n"


def test_fragments_are_merged_in_the_order_in_which_they_are_named() -> None:
    assert KCONFIGS["tiny+trace+align64"] == "CONFIG_A=y\n\nCONFIG_T=y\n\nCONFIG_L=y\n"
    assert KCONFIGS["tiny+align64+trace"] != KCONFIGS["tiny+trace+align64"]


def test_what_can_be_chosen_from_is_listed_without_fragments() -> None:
    assert (
        list(KCONFIGS) == ["tiny", "huge"]
        and "tiny+trace" in KCONFIGS
        and "tiny+nope" not in KCONFIGS
    )


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("nope", "there is no kernel configuration 'nope'; known are huge, tiny"),
        ("tiny+nope", "'tiny+nope': there is no fragment 'nope'; known are align64, trace"),
        ("tiny+trace+trace", "name each fragment once"),
        ("tiny+layout2", "layout2 cannot be the name of a fragment"),
        ("tiny+", "is not a valid kernel configuration name"),
        ("+trace", "is not a valid kernel configuration name"),
        ("", "is not a valid kernel configuration name"),
        ("tiny+../../etc/passwd", "is not a valid kernel configuration name"),
        ("../tiny", "is not a valid kernel configuration name"),
        ("fragments/trace", "is not a valid kernel configuration name"),
        ("tiny+tr\nace", "is not a valid kernel configuration name"),
        ("tiny+a+b+c+d+e", "at most 4"),
    ],
)
def test_a_name_that_is_none_gets_one_sentence(name: str, sentence: str) -> None:
    with pytest.raises(NoKconfig, match=r"^[^\n]+$") as caught:
        KCONFIGS.text(name)
    assert sentence in str(caught.value)


def test_a_configuration_that_lacks_an_option_is_refused_where_a_fragment_has_it() -> None:
    needs = {"program p": ("A", "T"), "program q": ("L",)}
    assert KCONFIGS.refusal("tiny", needs) == (
        "kernel configuration tiny lacks options that program p needs: CONFIG_T=y; add the"
        " fragment trace to the kernel configuration of the tree or the testbox"
    )
    assert KCONFIGS.refusal("tiny+trace+align64", needs) is None
    # what no fragment has, and what kbuild's own configuration sets, is seen when it boots
    assert KCONFIGS.refusal("tiny", {"program p": ("Z",)}) is None
    based = Kconfigs({"server": "# base: defconfig\n"}, KCONFIGS.fragments)
    assert based.refusal("server", needs) is None


def test_fragments_of_nothing_say_so() -> None:
    with pytest.raises(NoKconfig, match="known are none at all"):
        Kconfigs({"tiny": ""}).text("tiny+trace")


@given(st.text(max_size=300) | st.text("+./ab\\\n\0", max_size=30))
def test_a_name_that_is_taken_is_no_path(name: str) -> None:
    with contextlib.suppress(NoKconfig):
        parts = parts_of(name)
        assert all(
            "/" not in part and not part.startswith(".") for part in (parts.base, *parts.fragments)
        )
        assert "+".join((parts.base, *parts.fragments)) == name


def test_a_fragment_is_joined_once() -> None:
    assert joined("tiny", "trace") == "tiny+trace"
    assert joined("tiny+trace", "align64") == "tiny+trace+align64"
    assert joined("tiny+trace+align64", "trace") == "tiny+trace+align64"


def test_a_line_that_a_later_file_changes_is_not_missed() -> None:
    assert (
        accepted.not_overridden(
            "CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=8\n", "# CONFIG_A is not set\nCONFIG_B=y\n"
        )
        == "CONFIG_C=8"
    )


OVER = Kconfigs(
    {
        "server": "# base: defconfig\n# with: nic quiet\nCONFIG_A=y\n# base: none\n",
        "odd": "# base: allyesconfig\n",
        "lost": "# with: nowhere\n",
        "wrong": "# with: ../x\n",
    },
    {"nic": "CONFIG_N=y\n", "quiet": "CONFIG_Q=y\n", "trace": "CONFIG_T=y\n"},
)


def test_a_configuration_names_what_it_is_merged_over() -> None:
    assert OVER.over("server+trace") == Over("defconfig", ("nic", "quiet"))
    assert KCONFIGS.over("tiny+trace") == Over("tinyconfig")
    assert OVER.text("server+trace").split("\n\n")[:2] == ["CONFIG_N=y", "CONFIG_Q=y"]
    assert OVER.text("server+trace").endswith("CONFIG_A=y\n# base: none\n\nCONFIG_T=y\n")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("odd", "odd.config: '# base: allyesconfig' must name one of tinyconfig, defconfig"),
        ("lost", "there is no fragment 'nowhere'; known are nic, quiet, trace"),
        ("wrong", "is not a valid kernel configuration name"),
        ("server+quiet", "'server+quiet': server has quiet already"),
    ],
)
def test_what_a_configuration_cannot_be_merged_over_is_refused(name: str, sentence: str) -> None:
    with pytest.raises(NoKconfig) as caught:
        OVER.text(name)
    assert sentence in str(caught.value)


def test_what_is_shipped_can_be_named_and_each_fragment_asks_for_something() -> None:
    shipped = load_kconfigs(SHIPPED)
    assert {"align64", "trace"} <= set(shipped.fragments)
    for fragment, text in shipped.fragments.items():
        assert accepted.lost_lines(text, ""), fragment
        assert shipped.text(f"vm-x86_64+{fragment}").startswith(shipped["vm-x86_64"])
    assert shipped.over("server-x86_64") == Over("defconfig", ("server", "quiet"))
    assert shipped.text("server-x86_64").startswith(shipped.fragments["server"])


def test_options_that_a_kernel_may_lack_are_named_in_comments_of_the_fragment() -> None:
    text = "# t: a test\n#\n# optional: A CONFIG_B\nCONFIG_A=y\n# optional: C\nCONFIG_X=y\n"
    assert optional_of(text) == {"CONFIG_A", "CONFIG_B", "CONFIG_C"}
    assert optional_of("CONFIG_A=y\n") == set()


def test_shipped_fragments_set_the_options_that_they_call_optional() -> None:
    fragments = load_kconfigs(SHIPPED).fragments
    assert optional_of(fragments["mm"]) == {"CONFIG_READ_ONLY_THP_FOR_FS"}
    for name, text in fragments.items():
        lines = set(text.splitlines())
        assert all(f"{option}=y" in lines for option in optional_of(text)), name
