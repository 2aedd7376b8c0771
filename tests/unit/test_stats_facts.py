"""Rules of facts: which must be equal for two kernels to be comparable, which are only reported."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot.core.stats.fact_differences import Boots, against, differences
from swingbot.core.stats.fact_differences import explanation as fact_notes
from swingbot_jobs.contract.facts import known

MACHINE = [name for name, fact in known().items() if fact.compare == "machine" and "*" not in name]
FACTS = {
    "cmdline": "console=ttyS0 panic=-1 swingbot.delay_us=1200",
    "microcode": "0x1",
    "memory_kb": 2_000_000,
    "version.perf": "6.1.90",
    "thp_enabled": "always",
    "ready_seconds": 1.5,
    "kernel_release": "6.1.0-a",
    "rootfs": "00ff",
}


def differing(
    base: Boots, head: Boots, *, paired: bool, compared: Collection[str] = ()
) -> tuple[str | None, str | None]:
    found = differences(base, head, paired=paired, compared=compared)
    return against(found), fact_notes(found)


def both(
    base: dict[str, object], head: dict[str, object], *, paired: bool = False
) -> tuple[str | None, str | None]:
    return differing(
        {0: FACTS | base, 1: FACTS | base}, {0: FACTS | head, 1: FACTS | head}, paired=paired
    )


def test_equal_facts_say_nothing() -> None:
    assert both({}, {}) == (None, None)


@pytest.mark.parametrize(
    "change", [{"kernel_release": "6.1.0-b"}, {"ready_seconds": 9.0}, {"memory_kb": 1_990_000}]
)
def test_what_follows_from_the_kernel_may_differ(change: dict[str, object]) -> None:
    assert both({}, change) == (None, None)


DISKS = "nvme0n1: Samsung SSD 970, sda: ST4000NM, sdb: ST4000NM"


@pytest.mark.parametrize(
    ("base", "head"),
    [
        (
            {"disk_model": DISKS},
            {"disk_model": "sda: Samsung SSD 970, sdb: ST4000NM, sdc: ST4000NM"},
        ),
        ({"disk_scheduler": "sda: none, sdb: bfq"}, {"disk_scheduler": "sda: bfq, sdb: none"}),
        ({"nic_speed": "eth0: 1000, eth1: -1"}, {"nic_speed": "eth0: -1, eth1: 1000"}),
        ({"nic_speed": "eth0: 1000"}, {"nic_speed": "eth0: 25000"}),  # the job uses no network
        (
            {"server.nic_speed": "eth0: 1000, eth1: -1", "nic_driver": "a: e1000"},
            {"server.nic_speed": "eth1: 1000", "nic_driver": "b: e1000, c: e1000"},
        ),
    ],
)
def test_names_and_order_of_devices_and_links_that_are_not_used_say_nothing(
    base: dict[str, object], head: dict[str, object]
) -> None:
    assert both(base, head) == (None, None)


@pytest.mark.parametrize(
    ("base", "head", "words"),
    [
        (
            {"disk_model": DISKS},
            {"disk_model": DISKS.replace("sda", "x").removesuffix("NM")},
            "ST4000",
        ),
        ({"disk_model": DISKS}, {"disk_model": DISKS.partition(", sdb")[0]}, "disk_model differs"),
        (
            {"nic_speed": "eth0: 1000", "server.nic_speed": "eth0: 1000"},
            {"nic_speed": "eth0: 1000", "server.nic_speed": "eth3: 100"},
            "nic_speed of the server differs: 1000 in base, 100 in head",
        ),
    ],
)
def test_another_device_blocks(
    base: dict[str, object], head: dict[str, object], words: str
) -> None:
    objection, _ = both(base, head)
    assert objection is not None and words in objection


def test_the_perturbation_of_a_boot_is_no_difference_of_the_command_line() -> None:
    assert both({}, {"cmdline": "BOOT_IMAGE=b console=ttyS0 panic=-1 swingbot.delay_us=7"}) == (
        None,
        None,
    )


def test_the_token_of_a_bare_metal_boot_is_no_difference_of_the_command_line() -> None:
    token = "swingbot=o{0}-a{0}-77aa rdinit=/ssh/init panic=10"
    assert both({"cmdline": token.format(1)}, {"cmdline": token.format(2)}) == (None, None)


def test_a_command_line_that_differs_is_described_by_its_words() -> None:
    must, _ = both({}, {"cmdline": "console=ttyS0 panic=-1 mitigations=off"})
    assert must == "the kernel command line differs: nothing else in base, mitigations=off in head"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"microcode": "0x2"}, "microcode differs: 0x1 in base, 0x2 in head"),
        ({"version.perf": "6.12"}, "version.perf differs: 6.1.90 in base, 6.12 in head"),
        ({"memory_kb": 1_000_000}, "the memory (kB) differs: 2000000 in base, 1000000 in head"),
    ],
)
def test_another_machine_or_another_binary_is_no_comparison(
    change: dict[str, object], said: str
) -> None:
    assert both({}, change) == (said, None)


def test_what_a_kernel_sets_itself_is_reported_and_forbids_nothing() -> None:
    assert both({}, {"thp_enabled": "madvise"}) == (
        None,
        "thp_enabled differs: always in base, madvise in head",
    )


def test_a_setting_that_something_else_may_have_made_blocks_and_says_what_to_do() -> None:
    base, head = (
        {0: FACTS | {"rootfs": None}},
        {0: FACTS | {"rootfs": None, "thp_enabled": "madvise"}},
    )
    must, reported = differing(base, head, paired=True)
    assert (
        must
        == "thp_enabled differs: always in base, madvise in head (demand thp_enabled in the job, or set compare_fact: thp_enabled to compare it)"
    )
    assert reported is None
    assert differing(base, head, paired=True, compared=["thp_enabled"]) == (
        None,
        "thp_enabled differs: always in base, madvise in head",
    )


def test_what_is_compared_is_no_reason_against_a_verdict_and_all_else_still_is() -> None:
    base, head = (
        {0: FACTS},
        {0: FACTS | {"cmdline": "transparent_hugepage=never", "microcode": "0x2"}},
    )
    must, reported = differing(base, head, paired=False, compared=["cmdline"])
    assert must == "microcode differs: 0x1 in base, 0x2 in head"
    assert reported is not None and "transparent_hugepage=never in head" in reported


def test_what_blocks_is_first_and_the_variant_itself_last() -> None:
    head = FACTS | {
        "kernel_release": "6.1.0-b",
        "microcode": "0x2",
        "thp_enabled": "never",
        "ready_seconds": 3,
        "load1": 9,
        "unheard_of": 1,
    }
    found = differences({0: FACTS | {"load1": 0, "unheard_of": 0}}, {0: head}, paired=True)
    assert [(d.fact, d.kind) for d in found] == [
        ("microcode", "blocks"),
        ("thp_enabled", "told"),
        ("kernel_release", "variant"),
    ]
    document = found[0].to_json()
    assert (document["base"], document["head"], document["about"]) == (
        ["0x1"],
        ["0x2"],
        "microcode version",
    )


def test_a_fact_that_only_one_side_has_says_nothing() -> None:
    assert both({"cpu_model": "A"}, {}) == (None, None)


def test_a_fact_that_changes_on_the_way_spoils_boots_that_are_not_pairs() -> None:
    boots = {0: FACTS, 1: FACTS | {"microcode": "0x2"}}
    assert differing(boots, boots, paired=True) == (None, None)
    assert differing(boots, boots, paired=False) == (
        "microcode changed during the comparison: 0x1 and 0x2",
        None,
    )
    assert (
        differing(boots, {0: FACTS, 1: FACTS}, paired=True)[0]
        == "microcode differs: 0x2 in base, 0x1 in head"
    )


def test_many_differences_are_counted_and_long_values_cut() -> None:
    long: dict[str, object] = dict.fromkeys(MACHINE, "x" * 500)
    must, _ = both({}, long | {"version.perf": "y"})
    assert must is not None
    assert "more fact" in must
    assert len(must) < 400


@given(
    st.dictionaries(
        st.sampled_from([*MACHINE, "thp_enabled"]), st.text() | st.integers() | st.none()
    ),
    st.booleans(),
)
def test_any_facts_compare_equal_with_themselves_and_never_fail(
    facts: dict[str, object], paired: bool
) -> None:
    assert differing({0: facts}, {0: facts}, paired=paired) == (None, None)
    differing({0: facts}, {0: FACTS, 1: {}}, paired=paired)


def test_facts_of_a_clusters_server_count_as_those_of_the_client() -> None:
    def boots(**facts: object) -> dict[int, dict[str, object]]:
        return {0: {f"server.{name}": value for name, value in facts.items()}}

    cpu = differing(boots(cpu_model="one"), boots(cpu_model="two"), paired=False)
    assert cpu[0] == "the CPU model of the server differs: one in base, two in head"
    assert differing(boots(memory_kb=1_000_000), boots(memory_kb=1_001_000), paired=False) == (
        None,
        None,
    )
    assert differing(
        boots(cmdline="a swingbot.delay_us=1"), boots(cmdline="a swingbot.delay_us=2"), paired=False
    ) == (None, None)
