"""The one tuning list that worker and playbook read."""

from __future__ import annotations

from pathlib import Path

import pytest

from swingbot_jobs.contract import facts
from swingbot_jobs.testbox import tuning
from swingbot_jobs.testbox.file import load
from swingbot_jobs.testbox.table import TestboxError
from swingbot_jobs.testbox.tuning import Tuning, TuningError

ROOT = Path(__file__).parents[2]
TESTBOX = """
name: t1
tbox_group: rack
driver: command
command: {argv: ["/bin/true"]}
model: a machine
nr_cpu: 4
memory_mb: 4096
"""
LIST = """
about: of a test
items:
  clock:
    why: it follows the load
    boot: {governor: performance, turbo: off}
    idle: {governor: performance, vm.swappiness: 0}
  panic:
    why: it must come back
    cmdline: nokaslr
    sysctl: {kernel.panic: 30}
  cron:
    why: it wakes up
    stopped: [cron.service, apt-daily.timer]
"""


def a_tuning(text: str = LIST, **others: str) -> Tuning:
    return tuning.load(
        "t",
        {"t": ("t.yaml", text)} | {name: (f"{name}.yaml", other) for name, other in others.items()},
    )


def idle(
    governor: str = "performance",
    swappiness: str = "0",
    panic: str = "30",
    units: str = "inactive inactive",
) -> str:
    """What a testbox prints; the paths are those of Linux's sysfs and procfs."""
    return (
        f"/sys/devices/system/cpu/cpufreq/policy0/scaling_governor:{governor}\n"
        f"/proc/sys/vm/swappiness:{swappiness}\n/proc/sys/kernel/panic:{panic}\nunits: {units}\n"
    )


def test_every_shipped_list_loads_and_every_testbox_can_name_it() -> None:
    lists = tuning.load_all(ROOT / "workers" / "tuning")
    assert {"quiet", "quiet-cpu"} <= set(lists)
    for name in lists:
        assert load(f"{TESTBOX}tuning: {name}\n", "t1.yaml", lists).tuning == lists[name]


def test_what_a_list_demands_of_a_boot_is_demanded_of_each_boot_of_the_testbox() -> None:
    testbox = load(TESTBOX + "tuning: t\ncmdline: quiet\n", "t1.yaml", {"t": a_tuning()})
    assert testbox.demand == {"governor": "performance", "turbo": "off"}
    assert testbox.cmdline == "nokaslr quiet"
    assert testbox.to_json()["tuning"] == "t"


def test_a_boxs_own_demand_counts_more_than_its_list() -> None:
    testbox = load(
        TESTBOX + "tuning: t\ndemand: {governor: powersave}\n", "t1.yaml", {"t": a_tuning()}
    )
    assert testbox.demand == {"governor": "powersave", "turbo": "off"}


def test_what_a_testbox_cannot_have_is_left_out_in_both_lives() -> None:
    testbox = load(TESTBOX + "tuning: t\ntuning_without: [clock]\n", "t1.yaml", {"t": a_tuning()})
    assert testbox.demand == {}
    assert testbox.tuning is not None
    assert testbox.tuning.files == []
    assert testbox.to_json()["tuning_without"] == ["clock"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("tuning: loud\n", "there is no tuning list 'loud'; workers/tuning/ has t"),
        (
            "tuning: t\ntuning_without: [clocks]\n",
            "has no item 'clocks'; it has clock, panic, cron",
        ),
        ("tuning_without: [clock]\n", "'tuning: <list>' is missing"),
        ("tuning: t\ntuning_without: clock\n", "tuning_without: 'clock' is not a list"),
    ],
)
def test_a_testbox_that_names_what_is_not_there_is_reported_with_file_and_line(
    more: str, said: str
) -> None:
    with pytest.raises(TestboxError, match=r"t1.yaml:\d+: ") as caught:
        load(TESTBOX + more, "t1.yaml", {"t": a_tuning()})
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("items: {a: {why: x, boot: {governer: performance}}}", "there is no fact 'governer'"),
        ("items: {a: {why: x, idle: {stolen_ticks: 0}}}", "only known in a boot"),
        ("items: {a: {why: x, sysctl: {'kernel.panic;reboot': 1}}}", "must be a kernel parameter"),
        (
            "items: {a: {why: x, sysctl: {kernel.panic: '1; reboot'}}}",
            "t.yaml:1: items.a.sysctl.kernel.panic: '1; reboot' is not a plain value",
        ),
        ("items: {a: {why: x, stopped: ['cron.service; reboot']}}", "is not a unit"),
        ("items: {a: {why: x, stopped: ['--now.service']}}", None),
        ("items: {a: {boot: {governor: performance}}}", "needs a sentence `why`"),
        ("items: {a: {why: x, boots: {}}}", "t.yaml:1: items.a: key 'boots' is unknown here"),
        (
            "items: {a: {why: x, boot: {turbo: off}}, b: {why: y, boot: {turbo: on}}}",
            "turbo is listed under boot of both a and b",
        ),
        ('items: {a: {why: x, cmdline: "a\\nb"}}', "single blanks"),
        (
            "items: {a: {why: x, cmdline: a}, a: {why: x, cmdline: b}}",
            "t.yaml:1: 'a' appears twice",
        ),
        ("extends: t\nitems: {}", "which is itself"),
        ("extends: gone\nitems: {}", "which is missing"),
        ("- a", "is not a mapping"),
        ("items: [", "t.yaml:1: not valid YAML"),
        ("[" * 20_000, "nested too deeply"),
        ("a" * 300_000, "the file has 300000 characters, more than"),
    ],
)
def test_a_wrong_list_gets_one_sentence(text: str, said: str | None) -> None:
    if said is None:  # a name with dashes is a name: the probe ends the options before it
        assert "-- --now.service" in tuning.probe(a_tuning(text))
        return
    with pytest.raises(TuningError, match=r"^t\.yaml:[^\n]*$") as caught:
        a_tuning(text)
    assert said in str(caught.value)


def test_a_list_that_extends_another_has_its_items_and_may_replace_one() -> None:
    more = a_tuning(
        "extends: base\nitems: {clock: {why: another, boot: {governor: powersave}}}", base=LIST
    )
    assert [item.name for item in more.items] == ["panic", "cron", "clock"]
    assert more.demand == {"governor": "powersave"}


def test_facts_that_are_sysctls_are_set_as_sysctls_and_the_rest_as_files() -> None:
    made = a_tuning()
    assert made.sysctl == {"vm.swappiness": "0", "kernel.panic": "30"}
    assert made.files == [
        ("/sys/devices/system/cpu/cpufreq/policy*/scaling_governor", "performance")
    ]


def test_a_testbox_that_is_as_wanted_has_no_complaint() -> None:
    found = tuning.findings(a_tuning(), idle())
    assert [one.what for one in found] == [
        "governor is performance",
        "vm.swappiness is 0",
        "kernel.panic is 30",
        "disturbing services do not run",
    ]
    assert all(one.ok and not one.do for one in found)


@pytest.mark.parametrize(
    ("printed", "what", "seen"),
    [
        (idle(governor="powersave"), "governor is performance", "powersave"),
        (idle(swappiness="60"), "vm.swappiness is 0", "60"),
        (idle(panic="0"), "kernel.panic is 30", "0"),
        (idle(units="inactive active"), "apt-daily.timer does not run", "it runs"),
        (idle(units="activating unknown"), "cron.service does not run", "it runs"),
        (idle(units=""), "disturbing services do not run", "systemctl reported 0 of 2"),
        (idle().replace("governor:", "speed:"), "governor is performance", "unknown there"),
    ],
)
def test_what_is_not_as_wanted_is_reported_with_what_was_found_and_what_to_do(
    printed: str, what: str, seen: str
) -> None:
    (wrong,) = [one for one in tuning.findings(a_tuning(), printed) if not one.ok]
    assert (wrong.what, wrong.found) == (what, seen)
    assert wrong.do


def test_a_missing_thing_names_the_item_to_leave_out() -> None:
    printed = idle().replace("governor:", "speed:")
    assert "add clock to tuning_without" in next(
        one.do for one in tuning.findings(a_tuning(), printed) if not one.ok
    )


def test_a_testbox_that_prints_nonsense_without_end_is_read_in_bounded_time() -> None:
    found = tuning.findings(a_tuning(), "/proc/sys/kernel/panic:\x1b[2J" + "x:\n/" * 4_000_000)
    assert not any(one.ok for one in found)
    assert all(one.found.isprintable() for one in found)


def test_a_probe_reads_every_file_it_judges_by() -> None:
    for made in tuning.load_all(ROOT / "workers" / "tuning").values():
        text = tuning.probe(made)
        for name in made.idle:
            assert all(file in text for file in facts.known()[name].files)
        assert all(name.replace(".", "/") in text for name in made.sysctl)
        assert all(unit in text for unit in made.stopped)


def test_every_item_of_the_shipped_lists_holds_somewhere() -> None:
    for made in tuning.load_all(ROOT / "workers" / "tuning").values():
        assert made.demand
        assert made.cmdline
        assert made.stopped
        assert set(made.idle) <= set(made.demand), (
            "what is wanted of the idle testbox is wanted of the boots too"
        )
