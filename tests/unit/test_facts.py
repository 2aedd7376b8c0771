"""Rules of the list of facts, of reading a guest's files, and of what is demanded."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot_jobs import limits
from swingbot_jobs.contract import fact_sheet as sheet
from swingbot_jobs.contract.facts import (
    DemandError,
    checklist,
    demand,
    fact_of,
    files_of,
    known,
    meets,
    settings,
    unmet,
)
from swingbot_jobs.contract.facts import sheet as lines_of

CPUINFO = """/proc/cpuinfo:model name	: Some CPU @ 2.00GHz
/proc/cpuinfo:microcode	: 0x2b000603
/proc/cpuinfo:flags		: sse fpu
/proc/cpuinfo:model name	: Some CPU @ 2.00GHz
"""
SERVER = (
    CPUINFO
    + """/proc/cmdline:root=/dev/sda1 x=a:b
/proc/meminfo:MemTotal:       263856128 kB
/proc/meminfo:SwapTotal:             0 kB
/proc/loadavg:0.08 0.02 0.01 1/1234 5678
/proc/stat:cpu  10 20 30 40 50 60 70 80 0 0
/proc/mounts:cgroup2 /sys/fs/cgroup cgroup2 rw 0 0
/proc/sys/vm/swappiness:60
/sys/devices/system/cpu/online:0-3,8-11
/sys/devices/system/cpu/cpu0/topology/physical_package_id:0
/sys/devices/system/cpu/cpu1/topology/physical_package_id:1
/sys/devices/system/cpu/cpu0/topology/thread_siblings_list:0,8
/sys/devices/system/cpu/cpu0/cache/index0/level:1
/sys/devices/system/cpu/cpu0/cache/index0/type:Data
/sys/devices/system/cpu/cpu0/cache/index0/size:48K
/sys/devices/system/cpu/cpu0/cache/index3/level:3
/sys/devices/system/cpu/cpu0/cache/index3/type:Unified
/sys/devices/system/cpu/cpu0/cache/index3/size:61440K
/sys/devices/system/cpu/cpufreq/policy0/scaling_governor:performance
/sys/devices/system/cpu/cpufreq/policy1/scaling_governor:performance
/sys/devices/system/cpu/intel_pstate/no_turbo:1
/sys/devices/system/cpu/vulnerabilities/mds:Not affected
/sys/devices/system/cpu/vulnerabilities/spectre_v1:Mitigation: usercopy
/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count:3
/sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count:4
/sys/class/thermal/thermal_zone0/temp:41000
/sys/class/hwmon/hwmon1/temp1_input:52500
/sys/kernel/mm/transparent_hugepage/enabled:always [madvise] never
/sys/block/sda/queue/scheduler:[mq-deadline] none
/sys/class/net/eth0/mtu:1500
/sys/class/net/eth0/device/uevent:DRIVER=ixgbe
/sys/devices/system/node/node0/cpulist:0-3
"""
)


def test_what_a_server_s_files_say_is_read() -> None:
    found = sheet.read(SERVER)
    expected = {
        "cpu_model": "Some CPU @ 2.00GHz",
        "microcode": "0x2b000603",
        "cmdline": "root=/dev/sda1 x=a:b",
        "memory_kb": 263856128,
        "swap_kb": 0,
        "load1": 0.08,
        "steal_ticks": 80,
        "cgroup_version": 2,
        "vm.swappiness": 60,
        "nr_cpu": 8,
        "nr_socket": 2,
        "threads_per_core": 2,
        "caches": "L1d 48K, L3 61440K",
        "governor": "performance",
        "turbo": "off",
        "mitigations": "spectre_v1:Mitigation: usercopy;",
        "throttle_count": 7,
        "temperature_mc": 52500,
        "thp_enabled": "madvise",
        "disk_scheduler": "sda: mq-deadline",
        "nic_mtu": "eth0: 1500",
        "nic_driver": "eth0: ixgbe",
        "node_cpus": "node0: 0-3",
    }
    assert {name: found[name] for name in expected} == expected
    assert "epp" not in found  # no such file: no fact, not an empty one


def test_cpus_that_disagree_are_all_named() -> None:
    mixed = SERVER.replace(
        "policy1/scaling_governor:performance", "policy1/scaling_governor:powersave"
    )
    assert sheet.read(mixed)["governor"] == "performance, powersave"


def test_the_build_id_is_taken_from_the_notes_and_differences_from_both_readings() -> None:
    notes = (
        " 04 00 00 00 06 00 00 00 01 00 00 00 58 65 6e 00\n 01 02 03 04 05 06 00 00\n 04 00 "
        "00 00 08 00 00 00 03 00 00 00 47 4e 55 00 de ad be ef 00 11 22 33"
    )
    after = SERVER.replace("core_throttle_count:3", "core_throttle_count:5")
    found = sheet.facts_of(
        {sheet.BEFORE: SERVER, sheet.AFTER: after, sheet.NOTES: notes, "ready_seconds": "2.5\n"}
    )
    assert found["build_id"] == "deadbeef00112233"
    assert (
        found["throttle_count"],
        found["throttle_count_end"],
        found["throttled"],
        found["stolen_ticks"],
    ) == (7, 9, 2, 0)
    assert found["ready_seconds"] == 2.5
    assert "vm.swappiness_end" not in found


@given(
    st.dictionaries(
        st.sampled_from([sheet.BEFORE, sheet.AFTER, sheet.NOTES, "other"]),
        st.text(max_size=300) | st.sampled_from([SERVER[:n] for n in range(0, 2000, 37)]),
    )
)
def test_whatever_a_guest_sends_gives_short_printable_facts(members: dict[str, str]) -> None:
    for value in sheet.facts_of(members).values():
        assert not isinstance(value, str) or (
            value.isprintable() and len(value) <= limits.FACT_CHARACTERS
        )


def test_a_flood_of_files_is_cut() -> None:
    flood = "\n".join(f"/sys/class/net/{'e' * 50}{number}/mtu:1" for number in range(20_000))
    assert len(str(sheet.read(flood)["nic_mtu"])) <= limits.FACT_CHARACTERS


# --- the list


def test_every_fact_has_a_sentence_and_a_form_that_is_known() -> None:
    for fact in known().values():
        assert fact.about and fact.compare in ("machine", "setting", "kernel", "variant", "boot"), (
            fact
        )
        assert not fact.files or fact.form in sheet._FORMS, fact
        assert not fact.set or fact.files, fact
        assert not fact.of or fact.of in known(), fact


def test_the_checklist_names_facts_that_there_are_and_those_who_see_to_them() -> None:
    for item in checklist():
        assert set(item.verified) | set(item.recorded) <= known().keys(), item
        assert item.enforced in ("runner", "cmdline", "driver", "rootfs", "host"), item
        if item.enforced == "runner" and item.verified:
            assert any(known()[name].set for name in item.verified), item


def test_what_the_boots_of_a_guest_have_noted_so_far_keeps_its_name() -> None:
    """Stored boots have these, and comparisons with them go on."""
    assert {
        "cmdline",
        "cpu_model",
        "nr_cpu",
        "memory_kb",
        "thp_enabled",
        "thp_defrag",
        "clocksource",
        "governor",
        "microcode",
        "mitigations",
    } <= known().keys()


# --- demands


@pytest.mark.parametrize(
    ("given_", "kept"),
    [
        (("governor", "performance"), ("governor", "performance")),
        (("cpufreq_governor", "performance"), ("governor", "performance")),
        (("transparent_hugepage.thp_enabled", " always "), ("thp_enabled", "always")),
        (("vm.swappiness", "0"), ("vm.swappiness", "0")),
        (("load1", "<0.1"), ("load1", "<0.1")),
        (("turbo", "off"), ("turbo", "off")),
        (("sha256.perf", "00ff"), ("sha256.perf", "00ff")),
    ],
)
def test_a_demand_is_kept_by_the_fact_s_own_name(
    given_: tuple[str, str], kept: tuple[str, str]
) -> None:
    assert demand(*given_) == kept


@pytest.mark.parametrize(
    ("name", "wanted", "said"),
    [
        ("govenor", "performance", "did you mean"),
        ("governor", "perf; reboot", "neither a word, a number nor a bound"),
        ("governor", "$(reboot)", "neither a word"),
        ("governor", "", "neither a word"),
        ("turbo", "0", "turbo is on or off, not '0'"),
        ("version.*", "1", "there is no fact"),
    ],
)
def test_a_demand_that_cannot_be_is_refused_with_what_to_write(
    name: str, wanted: str, said: str
) -> None:
    with pytest.raises(DemandError, match=re.escape(said)):
        demand(name, wanted)


def test_only_what_the_testbox_can_set_is_set_and_turbo_in_the_words_of_each_driver() -> None:
    assert list(settings({"load1": "<0.1", "microcode": "0x1", "thp_enabled": "always"})) == [
        ("/sys/kernel/mm/transparent_hugepage/enabled", "always")
    ]
    assert [value for _, value in settings({"turbo": "off"})] == ["1", "0"]
    assert list(settings({"vm.swappiness": "<10"})) == []
    assert files_of({"vm.swappiness": "<10", "load1": "<1"}) == ["/proc/sys/vm/swappiness"]


@pytest.mark.parametrize(
    ("value", "wanted", "met"),
    [
        (1, "1", True),
        (1, "1.0", True),
        ("always", "always", True),
        ("never", "always", False),
        (0.09, "<0.1", True),
        (0.1, "<0.1", False),
        ("x", ">=0", False),
    ],
)
def test_words_are_equal_and_numbers_within_bounds(
    value: str | float, wanted: str, met: bool
) -> None:
    assert meets(value, wanted) is met


def test_what_is_not_as_demanded_is_said_in_a_sentence() -> None:
    assert (
        unmet({"governor": "performance"}, {}, {}, {})
        == "demand not met: governor is unknown in this boot; performance is required"
    )
    assert (
        unmet(
            {"thp_enabled": "always"},
            {"thp_enabled": "madvise"},
            {"thp_enabled": "always"},
            {"thp_enabled": "always"},
        )
        is None
    )
    changed = unmet(
        {"thp_enabled": "always", "load1": "<0.1"},
        {"load1": 0.5},
        {"thp_enabled": "always"},
        {"thp_enabled": "never"},
    )
    assert changed == (
        "demand not met: thp_enabled was never; always is required; load1 was 0.5; < 0.1 "
        "is required"
    )


def test_a_fact_that_is_read_again_has_to_hold_to_the_end() -> None:
    assert unmet({"clocksource": "tsc"}, {"clocksource": "tsc", "clocksource_end": "tsc"}) is None
    assert (
        unmet({"clocksource": "tsc"}, {"clocksource": "tsc", "clocksource_end": "hpet"})
        == "demand not met: clocksource was hpet; tsc is required"
    )


def test_a_sheet_names_every_fact_of_the_list_and_keeps_what_is_not_on_it() -> None:
    lines = lines_of({"thp_enabled": "always", "sha256.perf": "00ff", "load1_end": 0.5, "odd": 1})
    every = {line.name: line.value for group in lines.values() for line in group}
    assert (
        every["thp_enabled"],
        every["governor"],
        every["sha256.perf"],
        every["load1_end"],
        every["odd"],
    ) == ("always", None, "00ff", 0.5, 1)
    assert fact_of("load1_end") is known()["load1"]
    assert fact_of("cmdline_end") is None
