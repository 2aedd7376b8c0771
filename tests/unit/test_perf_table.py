"""The table of `perf stat -r N`, against published ones and against what perf itself prints.
Published figures are their authors', not measured here."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot.core.stats.compare import BootRuns, compare
from swingbot.core.stats.rules import rule_for
from swingbot_jobs.reading.perf_stat import read_perf_stat
from swingbot_jobs.reading.perf_table import derived, mean_of, means_of, perf_table

# "slub: prefetch next freelist pointer in slab_alloc()", December 2011: perf stat -r 32 hackbench
# 50 process 4000, before and after.
BEFORE = {
    "task-clock": 327577.471718,
    "context-switches": 28866491,
    "CPU-migrations": 1506929,
    "page-faults": 127151,
    "cycles": 829399813448,
    "stalled-cycles-frontend": 580664691740,
    "stalled-cycles-backend": 197431700448,
    "instructions": 503548648975,
    "branches": 95780068471,
    "branch-misses": 1426407916,
    "duration_time": 20.705679994e9,
}
AFTER = {
    "task-clock": 286236.542804,
    "context-switches": 19703372,
    "CPU-migrations": 1658249,
    "page-faults": 126776,
    "cycles": 724636593213,
    "stalled-cycles-frontend": 499320714837,
    "stalled-cycles-backend": 156555126809,
    "instructions": 463897792661,
    "branches": 87717352563,
    "branch-misses": 941738280,
    "duration_time": 18.132070670e9,
}
# The perf of 2011 knew M/sec alone (0,088 for context-switches); the rates below are in the units
# that perf chooses today.
PRINTED = """\
 Performance counter stats for './hackbench 50 process 4000' (1 run in 1 boot):

     327577,471718 task-clock                #   15,821 CPUs utilized
        28 866 491 context-switches          #   88,121 K/sec
         1 506 929 CPU-migrations            #    4,600 K/sec
           127 151 page-faults               #  388,156 /sec
   829 399 813 448 cycles                    #    2,532 GHz
   580 664 691 740 stalled-cycles-frontend   #   70,01% frontend cycles idle
   197 431 700 448 stalled-cycles-backend    #   23,80% backend  cycles idle
   503 548 648 975 instructions              #    0,61  insns per cycle
                                             #    1,15  stalled cycles per insn
    95 780 068 471 branches                  #  292,389 M/sec
     1 426 407 916 branch-misses             #    1,49% of all branches

      20,705679994 seconds time elapsed
"""
DERIVED_AFTER = {
    "task-clock": ["15.786 CPUs utilized"],
    "context-switches": ["68.836 K/sec"],  # published: 0.069 M/sec
    "CPU-migrations": ["5.793 K/sec"],  # 0.006 M/sec
    "page-faults": ["442.906 /sec"],  # 0.000 M/sec
    "cycles": ["2.532 GHz"],
    "stalled-cycles-frontend": ["68.91% frontend cycles idle"],
    "stalled-cycles-backend": ["21.60% backend cycles idle"],
    "instructions": ["0.64 insns per cycle", "1.08 stalled cycles per insn"],
    "branches": ["306.451 M/sec"],
    "branch-misses": ["1.07% of all branches"],
}

# perf 6.1.192 itself: perf stat -v -r 3 --table, of a script that works longer at each call; -v
# prints each run's counts.
OF_PERF = """\
[ perf stat: executing run #1 ... ]
task-clock: 217394428 217394428 217394428
page-faults: 1255 217394428 217394428
context-switches: 101 217394428 217394428
[ perf stat: executing run #2 ... ]
task-clock: 425400256 425400256 425400256
page-faults: 1250 425400256 425400256
context-switches: 182 425400256 425400256
[ perf stat: executing run #3 ... ]
task-clock: 617904338 617904338 617904338
page-faults: 1249 617904338 617904338
context-switches: 273 617904338 617904338

 Performance counter stats for './vary.sh' (3 runs):

            617.90 msec task-clock                       #    0.593 CPUs utilized            ( +- 18.72% )
              1249      page-faults                      #    2.972 K/sec                    ( +-  0.15% )
               273      context-switches                 #  649.640 /sec                     ( +- 18.20% )

             # Table of individual measurements:
             0.574 (-0.468) #################
             1.013 (-0.029) #
             1.539 (+0.497) #######

             # Final result:
             1.042 +- 0.279 seconds time elapsed  ( +- 26.76% )
"""


def test_the_published_table_comes_out_of_its_own_counts_digit_for_digit() -> None:
    assert perf_table([[BEFORE]], "./hackbench 50 process 4000", group=" ", decimal=",") == PRINTED


def test_the_derived_columns_of_the_published_table_after_the_change_come_out_too() -> None:
    found = {
        event: [" ".join((number + words).split()) for number, words in parts]
        for event, parts in derived(AFTER).items()
    }
    assert found == DERIVED_AFTER


def test_the_table_is_read_back_by_the_reader_of_perfs_own() -> None:
    runs = [[BEFORE], [{event: count * 1.02 for event, count in BEFORE.items()}]]
    for signs in ({"group": " ", "decimal": ","}, {}):
        counts = read_perf_stat(perf_table(runs, "x", **signs))
        assert counts["cycles"].value == pytest.approx(BEFORE["cycles"] * 1.01, abs=1)
        assert counts["seconds-elapsed"].value == pytest.approx(20.705679994 * 1.01)
        assert counts["task-clock"].stderr_pct == 0.99  # 100 * 0.01 / 1.01


def per_run(event: str) -> list[float]:
    return [float(count) for count in re.findall(rf"^{event}: (\d+)", OF_PERF, re.MULTILINE)]


def test_the_noise_behind_the_elapsed_time_is_what_perf_prints() -> None:
    elapsed = [float(line) for line in re.findall(r"^ +(\d\.\d+) \([-+]", OF_PERF, re.MULTILINE)]
    mean = mean_of(elapsed)
    assert (round(mean.value, 3), round(mean.stderr_pct or 0, 1)) == (1.042, 26.8)


@pytest.mark.parametrize(
    ("event", "scale"), [("task-clock", 1e-6), ("page-faults", 1.0), ("context-switches", 1.0)]
)
def test_this_perf_prints_the_last_run_and_the_standard_error_in_per_cent_of_it(
    event: str, scale: float
) -> None:
    printed = read_perf_stat(
        "".join(line + "\n" for line in OF_PERF.splitlines() if "#" not in line or "+-" in line)
    )[event]
    runs = [count * scale for count in per_run(event)]
    mean = mean_of(runs)
    assert printed.value == pytest.approx(runs[-1], abs=0.01)  # and not mean.value
    assert printed.value != pytest.approx(mean.value, rel=0.001)
    # what it divides by aside, the error is the same
    assert (printed.stderr_pct or 0) * printed.value == pytest.approx(
        (mean.stderr_pct or 0) * mean.value, rel=0.03
    )


def test_rates_are_of_means_as_perfs_are() -> None:
    runs = [
        {"task-clock": clock / 1e6, "page-faults": faults, "duration_time": elapsed * 1e9}
        for clock, faults, elapsed in zip(
            per_run("task-clock"), per_run("page-faults"), (0.574, 1.013, 1.539), strict=True
        )
    ]
    means = {event: mean.value for event, mean in means_of([[run] for run in runs]).items()}
    assert derived(means)["task-clock"] == [("0.403", " CPUs utilized")]  # 420.233 / 1042.0
    # perf's own rates: the last count, but the mean clock
    last = {"page-faults": 1249.0, "context-switches": 273.0, "task-clock": means["task-clock"]}
    assert derived(last)["page-faults"] == [("2.972", " K/sec")]
    assert derived(last)["context-switches"] == [("649.640", " /sec")]


@pytest.mark.parametrize(
    ("rate", "printed"),
    [
        (0.5, "0.500 /sec"),
        (1000.0, "1000.000 /sec"),  # perf goes to the next unit above 1000, not at it
        (1001.0, "1.001 K/sec"),
        (2.5e6, "2.500 M/sec"),
        (3e9, "3.000 G/sec"),
        (4e12, "4000.000 G/sec"),
    ],
)
def test_a_rate_is_in_the_unit_that_perf_chooses(rate: float, printed: str) -> None:
    (part,) = derived({"page-faults": rate, "task-clock": 1000.0})["page-faults"]
    assert "".join(part) == printed


def test_a_slow_first_run_of_every_boot_is_no_noise_between_boots() -> None:
    boots = [[{"task-clock": first}, {"task-clock": 1169.0}] for first in (2145.0, 2145.0, 2145.0)]
    (line,) = [line for line in perf_table(boots).splitlines() if "task-clock" in line]
    assert line.split() == ["1657.000000", "task-clock", "(", "+-", "0.00%", ")"]


def test_boots_count_alike_whatever_the_number_of_their_runs() -> None:
    boots = [[{"cycles": 10.0}], [{"cycles": 20.0}, {"cycles": 20.0}, {"cycles": 20.0}]]
    mean = means_of(boots)["cycles"]
    assert (mean.value, mean.boots) == (15.0, 2)
    assert mean.stderr_pct == pytest.approx(100 * 5 / 15)
    assert "(4 runs in 2 boots):" in perf_table(boots)


def test_an_event_that_a_boot_lacks_is_of_the_others_and_says_so() -> None:
    table = perf_table(
        [[{"cycles": 10, "page-faults": 1}], [{"cycles": 10}], [{"cycles": 10, "page-faults": 3}]]
    )
    assert re.search(r" 10 cycles +\( \+-  0\.00% \)\n", table)
    assert re.search(r" 2 page-faults +\( \+- 50\.00% \)  \[2 of 3 boots\]\n", table)


def test_what_would_divide_by_a_missing_count_is_left_out() -> None:
    assert (
        derived({"instructions": 5.0, "branch-misses": 1.0, "cycles": 0.0, "task-clock": 0.0}) == {}
    )


def test_one_boot_has_no_noise_and_none_is_an_error() -> None:
    assert "+-" not in perf_table([[{"cycles": 1.0}, {"cycles": 2.0}]])
    with pytest.raises(ValueError, match="at least one run"):
        perf_table([])


@given(st.lists(st.floats(1, 1e9), min_size=2, max_size=30))
def test_the_noise_is_the_standard_error_and_never_the_stddev(values: list[float]) -> None:
    mean = mean_of(values)
    centre = sum(values) / len(values)
    stddev = math.sqrt(sum((value - centre) ** 2 for value in values) / (len(values) - 1))
    assert mean.stderr_pct == pytest.approx(
        100 * stddev / math.sqrt(len(values)) / centre, rel=1e-6, abs=1e-4
    )


# --- published comparisons: (base, head, printed) -------------------------------------------------

PERCENTAGES = {
    # will-it-scale/page_fault1 in process mode, March 2018: each row against the one above it
    "prefetch buddy, Broadwell 2S": [(9034215, 9536374, "+5.6%"), (9536374, 10180856, "+6.8%")],
    "prefetch buddy, Skylake 2S": [(7971818, 8314710, "+4.3%"), (8314710, 8506369, "+2.3%")],
    "prefetch buddy, Broadwell 4S": [(13667135, 14070408, "+3.0%"), (14070408, 14756865, "+4.9%")],
    "prefetch buddy, Skylake 4S": [(15677465, 16675866, "+6.4%"), (16675866, 17325324, "+3.9%")],
    # zone lock scalability, September 2018: each against the first patch
    "zone lock": [
        (9219349, 2461133, "-73.3%"),
        (9219349, 11712766, "+27.0%"),
        (9219349, 11386980, "+23.5%"),
        (9219349, 11733153, "+27.3%"),
        (9219349, 12094893, "+31.2%"),
    ],
    # always inline, October 2017: head against base of the same compiler
    "always inline, 2S": [
        (6496131, 6911823, "+6.4%"),
        (7225110, 7731072, "+7.0%"),
        (7054224, 7688146, "+9.0%"),
        (7059794, 7651675, "+8.4%"),
    ],
    "always inline, 4S": [
        (13162890, 13508193, "+2.6%"),
        (14997463, 15484353, "+3.2%"),
        (14708711, 15449805, "+5.0%"),
        (14574099, 15349204, "+5.3%"),
    ],
    # netperf UDP_STREAM, April 2022
    "limit high-order pages": [
        (72288, 90784, "+25.6%"),
        (120956, 99177, "-18.0%"),
        (120956, 116108, "-4.0%"),
    ],
}


@pytest.mark.parametrize("series", PERCENTAGES)
def test_published_percentages_come_out_of_the_published_levels(series: str) -> None:
    rule = rule_for("benchmark", "higher", 2.0)
    for base, head, printed in PERCENTAGES[series]:
        judged = compare(
            [BootRuns(k=0, values=(float(base),))], [BootRuns(k=0, values=(float(head),))], rule
        )
        assert judged.change_pct is not None
        assert f"{judged.change_pct:+.1f}%" == printed


def test_the_share_of_an_extrapolated_count_is_printed_as_perf_prints_it() -> None:
    run = {"cycles": 1000.0, "page-faults": 5.0}
    table = perf_table([[run | {"running_pct.cycles": 40.0}], [run, run]])
    assert "running_pct" not in table
    counts = read_perf_stat(table)
    assert (counts["cycles"].running_pct, counts["page-faults"].running_pct) == (70, 100)
