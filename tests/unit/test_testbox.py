"""Testbox files: what is accepted, what is refused and how it is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.testbox.definition import CommandDriver, Perturbations, QemuDriver
from swingbot_jobs.testbox.file import load, load_all
from swingbot_jobs.testbox.table import TestboxError

SHIPPED = Path(__file__).resolve().parents[2] / "workers" / "testboxes"

MINIMAL = """\
name: box
tbox_group: boxes
driver: qemu
model: some VM
nr_cpu: 1
memory_mb: 512
qemu:
  accel: icount
"""


def test_shipped_testboxes_load_and_say_what_their_numbers_are_worth() -> None:
    testboxes = load_all(SHIPPED)
    assert set(testboxes) == {"cs-vm", "vm-icount", "vm-mm", "vm-tcg"}
    assert testboxes["cs-vm"].nodes == ("vm-tcg",)
    assert (
        testboxes["vm-icount"].label
        == "emulated; instruction-count clock; 1 vCPU: path length only"
    )
    assert testboxes["vm-icount"].repeatable and not testboxes["vm-tcg"].repeatable
    assert testboxes["vm-icount"].driver == QemuDriver(accel="icount", icount_shift=3)


def test_defaults_are_modest() -> None:
    testbox = load(MINIMAL, "box.yaml")
    assert (testbox.label, testbox.repeatable, testbox.perturbation(7), testbox.cmdline) == (
        "",
        False,
        0,
        "",
    )


def test_facts_are_plain_json() -> None:
    facts = load(MINIMAL, "box.yaml").to_json()
    assert facts["driver"] == "qemu"
    assert facts["qemu"]["accel"] == "icount"


def test_what_a_testbox_demands_holds_for_each_job_unless_the_job_says_otherwise() -> None:
    testbox = load(
        MINIMAL + "demand: {turbo: off, cpufreq_governor: performance, vm.swappiness: 0}\n",
        "box.yaml",
    )
    assert testbox.demand == {"turbo": "off", "governor": "performance", "vm.swappiness": "0"}
    plain, own = (
        UnitJob(name="j", program="p", params={}, runs=1, demand=demand)
        for demand in ({}, {"governor": "powersave"})
    )
    one, other = testbox.demanded([plain, own])
    assert one.demand == testbox.demand
    assert other.demand == {**testbox.demand, "governor": "powersave"}
    assert load(MINIMAL, "box.yaml").demanded([plain]) == [plain]


def test_a_command_driver_keeps_its_words() -> None:
    text = MINIMAL.replace("driver: qemu", "driver: command").replace(
        "qemu:\n  accel: icount", "command:\n  argv: [boot-it, --fast]"
    )
    assert load(text, "box.yaml").driver == CommandDriver(argv=("boot-it", "--fast"))


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (MINIMAL + "colour: red\n", 9, "key 'colour' is unknown"),
        (MINIMAL + "  colour: red\n", 9, "key 'colour' is unknown"),
        (MINIMAL.replace("nr_cpu: 1", "nr_cpu: one"), 5, "nr_cpu: 'one' is not a whole number"),
        (MINIMAL.replace("nr_cpu: 1", "nr_cpu: 2"), 5, "must be 1"),
        (MINIMAL.replace("nr_cpu: 1", "nr_cpu: true"), 5, "nr_cpu: 'true' is not a whole number"),
        (MINIMAL.replace("driver: qemu", "driver: smoke"), 3, "driver: 'smoke' is not one of qemu"),
        (MINIMAL.replace("accel: icount", "accel: warp"), 8, "accel: 'warp' is not one of icount"),
        (
            MINIMAL.replace("accel: icount", "accel: tcg") + "repeatable: true\n",
            9,
            "only a qemu testbox with accel icount",
        ),
        (MINIMAL + "demand:\n  turbo: sometimes\n", 10, "turbo is on or off, not 'sometimes'"),
        (MINIMAL + "demand:\n  governer: performance\n", 10, "there is no fact 'governer'"),
        (MINIMAL + "demand:\n  governor: [a, b]\n", 10, "governor: ('a', 'b') is not a string"),
        (
            MINIMAL + "demand:\n  governor: a\n  cpufreq_governor: b\n",
            11,
            "cpufreq_governor is demanded twice",
        ),
        (MINIMAL + "demand: performance\n", 9, "demand: 'performance' is not a mapping"),
        (MINIMAL.replace("model: some VM\n", ""), 1, "model: is missing"),
        (MINIMAL.replace("name: box", "name: other"), 1, "must be the file's name"),
        (MINIMAL + "name: box\n", 9, "appears twice"),
        (MINIMAL + "label: [\n", 10, "not valid YAML"),
        (MINIMAL + "boot_seconds: 0\n", 9, "above 0"),
        ("- a\n", 1, "must be a table"),
        (
            MINIMAL.replace("qemu:\n  accel: icount", "qemu: icount"),
            7,
            "qemu: 'icount' is not",
        ),
        (
            MINIMAL.replace("driver: qemu", "driver: command").replace(
                "qemu:\n  accel: icount", "command:\n  argv: boot-it"
            ),
            8,
            "argv: 'boot-it' is not a list",
        ),
    ],
)
def test_a_wrong_file_is_refused_with_file_and_line(text: str, line: int, says: str) -> None:
    with pytest.raises(TestboxError) as refused:
        load(text, "box.yaml")
    assert str(refused.value).startswith(f"box.yaml:{line}: ")
    assert says in str(refused.value)


def test_perturbations_are_distinct_endless_and_in_range() -> None:
    delays = Perturbations(seed=1, count=16, max_ms=20)
    drawn = [delays(k) for k in range(200)]
    assert len(set(drawn[:16])) == 16
    assert len(set(drawn)) > 190
    assert all(1 <= delay <= 20_000 for delay in drawn)


def test_each_round_of_perturbations_covers_the_whole_range() -> None:
    delays = Perturbations(seed=5, count=8, max_ms=8)
    for start in (0, 8, 16):
        assert sorted(delays(k) // 1000 for k in range(start, start + 8)) == list(range(8))


def test_perturbations_never_change_between_releases() -> None:
    # Stored results name only k: another list would make old and new boots of one k incomparable.
    assert [Perturbations(seed=1, count=16, max_ms=20)(k) for k in range(4)] == PINNED
    assert [Perturbations(seed=1, count=16, max_ms=20)(k, "fresh") for k in range(4)] == FRESH


@pytest.mark.parametrize("purpose", ["fresh", "anchor", "fix", "gate", "gate-2"])
@pytest.mark.parametrize("seed", [1, 2])
def test_no_boot_of_another_purpose_repeats_a_boot_of_the_search(purpose: str, seed: int) -> None:
    delays = Perturbations(seed=seed, count=16, max_ms=20)
    drawn = [delays(k, purpose) for k in range(16)]
    assert len(set(drawn)) == 16
    assert all(1 <= delay <= 20_000 for delay in drawn)
    assert not {delays(k) for k in range(1000)} & set(drawn)
    assert not {delays(k, f"{purpose}-9") for k in range(16)} & set(drawn)


def test_a_range_without_room_for_other_purposes_is_used_again() -> None:
    delays = Perturbations(seed=1, count=1, max_ms=1)
    assert [1 <= delays(k, "fresh") <= 1000 for k in range(4)] == [True] * 4


PINNED = [4656, 15167, 9410, 7551]
FRESH = [4318, 16266, 10368, 13260]
