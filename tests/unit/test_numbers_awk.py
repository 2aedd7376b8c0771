"""The awk script that reads results where swingbot is not installed agrees with the parser on every
recorded output."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from swingbot_jobs.reading.parse import _parser
from swingbot_jobs.reading.result import ParseError

PROGRAMS = Path(__file__).resolve().parents[2] / "jobs" / "programs"
RAW_OUTPUT = Path(__file__).parent / "raw_output"  # what test_raw_output.py refuses
AWKS = [
    words for words in (["mawk"], ["gawk", "--posix"], ["busybox", "awk"]) if shutil.which(words[0])
]
RECORDED = sorted(
    file
    for script in PROGRAMS.glob("*/numbers.awk")
    for file in (script.parent / "samples").glob("*.expected.json")
)
# Only LKP's runtest.py prints such a table; our run calls the program itself.
NOT_OURS = {"runtest-table"}


def awk(words: list[str], program: str, params: dict[str, str], output: Path) -> dict[str, float]:
    given = [word for name, value in params.items() for word in ("-v", f"{name}={value}")]
    done = subprocess.run(
        [*words, *given, "-f", str(PROGRAMS / program / "numbers.awk"), str(output)],
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert done.returncode == 0, done.stderr
    return {
        f"{program}.{line.split()[0]}": float(line.split()[1]) for line in done.stdout.splitlines()
    }


def test_every_benchmark_has_one() -> None:
    benchmarks = {
        meta.parent.name
        for meta in PROGRAMS.glob("*/meta.yaml")
        if "\nkind: benchmark\n" in f"\n{meta.read_text()}"
    }
    assert benchmarks == {script.parent.name for script in PROGRAMS.glob("*/numbers.awk")}
    assert AWKS


@pytest.mark.parametrize("words", AWKS, ids=lambda words: str(words[0]))
@pytest.mark.parametrize(
    "output",
    [
        *("netperf/zero.txt", "netperf/one-of-two-zero.txt", "netperf/cut-row.txt"),
        *("netperf/udp-no-receiver.txt", "netperf/udp-nothing-arrived.txt"),
        *("netperf/stream-and-requests.txt", "netperf/one-of-two-short.txt", "netperf/no-time.txt"),
        *("netperf/not-a-number.txt", "will-it-scale/killed.txt", "hackbench/signal.txt"),
        *("hackbench/cut-iteration.txt", "hackbench/sender.txt", "hackbench/killed.txt"),
        "hackbench/no-thread.txt",
    ],
)
def test_awk_reads_nothing_where_the_parser_refuses(words: list[str], output: str) -> None:
    assert awk(words, output.partition("/")[0], {}, RAW_OUTPUT / output) == {}


# A recorded output, and what replaces some words in it: other units and separators, a cut.
ODD = [
    ("perf-bench-syscall/host", "ops/sec", "K ops/sec"),
    ("perf-bench-syscall/host", "[sec]", "[msec]"),
    ("perf-bench-syscall/host", ".", ","),
    ("perf-bench-syscall/host", "usecs/op", "nsecs/op"),
    ("perf-bench-syscall/host", "854920", "85492"),
    ("perf-bench-sched-pipe/guest-process", "13584", "1358"),
    ("perf-bench-sched-pipe/guest-process", "13584", "13584.2"),
    ("perf-bench-sched-pipe/guest-process", "13584", "13.584K"),
    ("perf-bench-futex/guest-wake", "2.7264 ms", "2726.4 us"),
    ("perf-bench-futex/guest-wake", "+-16.70%", "+- -nan%"),
    ("perf-bench-futex/guest-hash", "0.00%), total secs = 1", "0.0"),
    ("anon-touch/guest-seq", "touch_p99_ns", "touch_p99_us"),
    ("anon-touch/guest-seq", " system_seconds", ""),
    ("anon-touch/guest-seq", "content=", "content=x"),
    ("huge-pages/guest-hugetlb", "test=hugetlb", "test=gigantic"),
    ("huge-pages/guest-hugetlb", " migrated=", " moved="),
    ("huge-pages/guest-compact", " asked=", " asked=-"),
    ("memcg/guest", "create_seconds", "create_ms"),
    ("memcg/guest", "charged_bytes=", "charged_bytes=0x"),
    ("memcg/guest", " left=0", ""),
    ("page-cache/guest-read", " p99_ns", " p99_us"),
    ("page-cache/guest-read", "test=read", "test=seek"),
    ("page-cache/guest-read", " seconds=0.2", " seconds=,2"),
    ("stress-ng/debian12-brk", "(usr+sys time)", "(usr+sys msec)"),
    ("stress-ng/debian12-brk", "bogo ops/s     bogo", "bogo ops/ms    bogo"),
    ("stress-ng/debian12-brk", "66645.46", "66,645.46"),
    ("stress-ng/debian12-brk", "        20.57          2448", ""),
    ("stress-ng/debian13-mmap", "untrustworthy: 0", "untrustworthy: 1: mmap (1)"),
    ("redis/debian12", '"rps"', '"krps"'),
    ("redis/debian12", '"26666.67"', '"26,666.67"'),
    ("redis/debian12", '"GET"', '"SET"'),
    ("redis/debian12", ',"5.175"', ""),
    ("iperf/debian12", '"bits_per_second"', '"bytes_per_second"'),
    ("iperf/debian12", '"sum_received"', '"sum_sent"'),
    ("tbench/debian12", "MB/sec ", "KB/sec "),
    ("tbench/debian12", "235.482", "235,482"),
    ("tbench/debian12", " ms\n", " us\n"),
    ("dbench/debian12", " max_latency=16.252 ms", ""),
]


@pytest.mark.parametrize("words", AWKS, ids=lambda words: str(words[0]))
@pytest.mark.parametrize(("sample", "was", "now"), ODD)
def test_awk_reads_no_number_with_another_unit_and_none_of_a_cut_line(
    words: list[str], sample: str, was: str, now: str, tmp_path: Path
) -> None:
    program, name = sample.split("/")
    raw = PROGRAMS / program / "samples" / f"{name}.raw"
    text = (raw / "stdout" if raw.is_dir() else raw).read_text()
    assert was in text
    odd = tmp_path / "odd"
    odd.write_text(text.replace(was, now))
    with pytest.raises(ParseError):
        _parser(PROGRAMS / program / "parse.py")({"stdout": odd.read_text()}, {})
    assert awk(words, program, {}, odd) == {}


@pytest.mark.parametrize("words", AWKS, ids=lambda words: str(words[0]))
@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("00100000-bfffffff : System RAM", "00100000-bfffffff : System RAM\n" * 2),
        ("00100000-bfffffff", "00000000-bfffffff"),
        ("00100000-bfffffff : System RAM", "00100000-bf[   12.3] a message\nffffff : System RAM"),
    ],
    ids=("repeated", "overlaps", "torn"),
)
def test_memory_is_not_summed_over_ranges_that_are_not_understood(
    words: list[str], was: str, now: str, tmp_path: Path
) -> None:
    text = (PROGRAMS / "memory-idle/samples/host.raw").read_text()
    odd = tmp_path / "odd"
    odd.write_text(text.replace(was, now))
    assert odd.read_text() != text
    found = _parser(PROGRAMS / "memory-idle/parse.py")({"stdout": odd.read_text()}, {})
    assert "reserved" not in found and "used" in found
    assert awk(words, "memory-idle", {}, odd) == {f"memory-idle.{k}": v for k, v in found.items()}


@pytest.mark.parametrize("words", AWKS, ids=lambda words: str(words[0]))
@pytest.mark.parametrize(
    "expected",
    RECORDED,
    ids=lambda file: f"{file.parents[1].name}-{file.name.removesuffix('.expected.json')}",
)
def test_awk_reads_the_numbers_that_the_parser_reads(words: list[str], expected: Path) -> None:
    program, name = expected.parents[1].name, expected.name.removesuffix(".expected.json")
    document = json.loads(expected.read_text())
    raw = expected.with_name(f"{name}.raw")
    found = awk(words, program, document.get("params", {}), raw / "stdout" if raw.is_dir() else raw)
    wanted = {
        metric: values[0]
        for metric, values in document.get("samples", {}).items()
        if metric.startswith(f"{program}.")
    }
    assert found == (
        {}
        if name in NOT_OURS
        else {metric: pytest.approx(value, rel=1e-14) for metric, value in wanted.items()}
    )
