from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from swingbot_jobs import limits
from swingbot_jobs.language.meta_table import ProgramError
from swingbot_jobs.language.program import (
    Program,
    find_metric,
    load_program,
    load_programs,
)
from swingbot_jobs.reading.parse import parse_file, parse_run
from swingbot_jobs.reading.result import ParseError
from tests.programs import PROGRAMS

JOBS = Path(__file__).resolve().parents[2] / "jobs"
BENCHMARKS = sorted(name for name, program in PROGRAMS.items() if program.kind == "benchmark")
MONITORS = sorted(name for name, program in PROGRAMS.items() if program.kind == "monitor")
SAMPLES = sorted((JOBS / "programs").glob("*/samples/*.raw"))


def files_of(raw: Path) -> dict[str, str]:
    return (
        {file.name: file.read_text() for file in raw.iterdir()}
        if raw.is_dir()
        else {"stdout": raw.read_text()}
    )


def parsed(raw: Path, params: Mapping[str, str]) -> dict[str, object]:
    """The samples of a recorded output, or the sentence that says why there are none."""
    program = raw.parent.parent.name
    try:
        if PROGRAMS[program].kind == "monitor":
            return {"samples": parse_file(program, raw, PROGRAMS)["samples"]}
        return {"samples": parse_run(program, files_of(raw), params, PROGRAMS)}
    except ParseError as error:
        return {"error": str(error).removeprefix(f"{raw}: ")}


@pytest.mark.parametrize("raw", SAMPLES, ids=lambda raw: f"{raw.parent.parent.name}/{raw.stem}")
def test_a_recorded_output_gives_the_samples_written_beside_it(raw: Path) -> None:
    expected = json.loads(raw.with_suffix(".expected.json").read_text())
    undescribed = [m for m in expected.get("samples", {}) if find_metric(PROGRAMS, m) is None]
    assert undescribed == [], "meta.yaml describes every metric"
    assert parsed(raw, expected.pop("params", {})) == expected


@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_every_program_has_two_recorded_outputs_and_one_that_is_no_result(program: str) -> None:
    kinds = [
        next(iter(json.loads(path.read_text()).keys() - {"params"}))
        for path in (JOBS / "programs" / program / "samples").glob("*.expected.json")
    ]
    assert kinds.count("samples") >= 2
    assert kinds.count("error") >= 1


@pytest.mark.parametrize("program", BENCHMARKS)
@pytest.mark.parametrize(
    "files",
    [
        {},
        {"stdout": ""},
        {"stdout": "\n\nSegmentation fault\n"},
        {"stdout": "\x00\x1b[31m\ufffd" * 50},
    ],
)
def test_empty_output_and_rubbish_are_no_result(program: str, files: dict[str, str]) -> None:
    with pytest.raises(ParseError):
        parse_run(program, files, {}, PROGRAMS)


def hackbench(*times: str, tasks: int = 40) -> dict[str, str]:
    head = (
        f"Running in process mode with 1 groups using 40 file descriptors each (== {tasks} "
        f"tasks)\nEach sender will pass 100 messages of 100 bytes\n"
    )
    return {"stdout": "".join(f"{head}Time: {time}\n" for time in times)}


def test_hackbench_counts_its_best_time_in_whole_kilobytes() -> None:
    kb = 390  # 40 * 100 * 100 >> 10
    samples = parse_run("hackbench", hackbench("0.5", "0.25", "1.0"), {"iterations": "3"}, PROGRAMS)
    assert samples == {
        "hackbench.throughput": [kb / 0.25],
        "hackbench.throughput_worst": [kb / 1.0],
        "hackbench.throughput_avg": [round(kb / (1.75 / 3), 2)],
    }


def test_lines_that_are_not_hackbenchs_are_passed_over() -> None:
    files = {
        "stdout": "perf version 6.1\n"
        + hackbench("0.5")["stdout"].replace("Time", "kernel.pid_max = 4194304\nTime")
    }
    assert parse_run("hackbench", files, {}, PROGRAMS)["hackbench.throughput"] == [780.0]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (hackbench("0.000", "0.000", "0.000"), "less time than its clock resolves"),
        (hackbench("0.5", "0.5"), "2 of 3 hackbench iterations"),
        (
            {
                "stdout": hackbench("0.5")["stdout"]
                + hackbench("0.5", tasks=80)["stdout"]
                + hackbench("0.5")["stdout"]
            },
            "printed different ones",
        ),
        ({"stdout": "Time: 1.0\nTime: 1.0\nTime: 1.0\n"}, "did not print the number of tasks"),
    ],
)
def test_a_hackbench_run_that_is_not_whole_is_no_result(
    files: dict[str, str], message: str
) -> None:
    with pytest.raises(ParseError, match=message):
        parse_run("hackbench", files, {"iterations": "3"}, PROGRAMS)


UDP_HEAD = """Socket  Message  Elapsed      Messages
Size    Size     Time         Okay Errors   Throughput
bytes   bytes    secs            #      #   10^6bits/sec

"""


def udp(sent: float, received: float | None, size: int = 1000) -> str:
    text = f"{UDP_HEAD}212992   {size}   2.00       14      0    {sent:.2f}\n"
    return text + (
        f"212992           2.00       7           {received:.2f}\n" if received is not None else ""
    )


def test_netperf_means_and_sums_are_over_instances() -> None:
    samples = parse_run(
        "netperf", {"stdout": udp(100, 50) + udp(300, 70)}, {"nr_threads": "2"}, PROGRAMS
    )
    assert samples == {
        "netperf.Throughput_Mbps": [200.0],
        "netperf.ThroughputRecv_Mbps": [60.0],
        "netperf.ThroughputBoth_Mbps": [260.0],
        "netperf.Throughput_total_Mbps": [400.0],
        "netperf.ThroughputRecv_total_Mbps": [120.0],
        "netperf.ThroughputBoth_total_Mbps": [520.0],
        "netperf.workload": [520.0 * 2.00 * 1e6 / 8 / 1000],
    }


def test_netperf_totals_are_per_iteration_and_every_iteration_must_be_there() -> None:
    text = "Iterations: 2\n" + udp(100, 50) + udp(300, 70)
    samples = parse_run("netperf", {"stdout": text}, {"nr_threads": "1"}, PROGRAMS)
    assert samples["netperf.Throughput_total_Mbps"] == [200.0]
    with pytest.raises(ParseError, match="2 of 4 netperf instances printed a result"):
        parse_run("netperf", {"stdout": text}, {"nr_threads": "2"}, PROGRAMS)


@pytest.mark.parametrize(("text", "threads"), [(udp(100, 50), "2"), (udp(1, 1) * 3, "2")])
def test_netperf_instances_that_are_not_as_many_as_asked_for_are_no_result(
    text: str, threads: str
) -> None:
    with pytest.raises(ParseError, match=rf"\d of {threads} netperf instances printed a result"):
        parse_run("netperf", {"stdout": text}, {"nr_threads": threads}, PROGRAMS)


def test_a_netperf_receiver_that_said_nothing_is_no_result() -> None:
    with pytest.raises(ParseError, match="1 of 2 netperf receivers"):
        parse_run(
            "netperf", {"stdout": udp(100, 50) + udp(100, None)}, {"nr_threads": "2"}, PROGRAMS
        )


def test_what_a_program_said_is_quoted_without_control_characters() -> None:
    with pytest.raises(ParseError, match=r"netperf said: no\?\[31m server$"):
        parse_run("netperf", {"stdout": "\n--- netperf 1 of 1\nno\x1b[31m server\n"}, {}, PROGRAMS)


def test_a_mode_of_will_it_scale_that_did_not_run_is_missing_and_not_zero() -> None:
    table = (
        "tasks,processes,processes_idle,threads,threads_idle,linear\n0,0,100,0,100,0\n"
        "4,1000,0.0,0,0.0,0\n"
    )
    assert parse_run("will-it-scale", {"stdout": table}, {}, PROGRAMS) == {
        "will-it-scale.per_process_ops": [250.0],
        "will-it-scale.workload": [1000.0],
        "will-it-scale.4.processes": [1000.0],
    }


def test_a_row_of_will_it_scale_without_an_average_is_no_result() -> None:
    table = (
        "tasks,processes,processes_idle,threads,threads_idle,linear\n0,0,100,0,100,0\n"
        "4,1000,0.0,-1,0.0,0\n"
    )
    with pytest.raises(ParseError, match="with 4 tasks, will-it-scale's threads printed no result"):
        parse_run("will-it-scale", {"stdout": table}, {}, PROGRAMS)


ALIVE = (
    "warmup\nmin:0 max:9 total:9\nmeasurement\nmin:0 max:8 total:8\nmin:3 max:8 total:11\n"
    "average:9\n"
)


def test_a_copy_of_will_it_scale_that_died_is_not_averaged_over() -> None:
    params = {"nr_task": "2", "mode": "process"}
    assert parse_run("will-it-scale", {"stdout": ALIVE}, params, PROGRAMS)[
        "will-it-scale.workload"
    ] == [9.0]
    with pytest.raises(ParseError, match="did nothing in the last second that was measured"):
        parse_run("will-it-scale", {"stdout": ALIVE.replace("min:3", "min:0")}, params, PROGRAMS)
    with pytest.raises(
        ParseError, match="a copy of will-it-scale died: Assertion `ret == 1' failed"
    ):
        parse_run(
            "will-it-scale",
            {
                "stdout": ALIVE,
                "stderr": "x_processes: tests/x.c:33: child: Assertion `ret == 1' failed.\n",
            },
            params,
            PROGRAMS,
        )


def test_instances_of_hackbench_have_numbers_of_their_own_and_none_may_be_silent() -> None:
    one, two = hackbench("0.5", "1.0")["stdout"], hackbench("0.25", tasks=80)["stdout"]
    samples = parse_run(
        "hackbench", {"stdout": f"Instance: 1\n{one}Instance: 2\n{two}"}, {}, PROGRAMS
    )
    assert samples["hackbench.throughput.instance1"] == [390 / 0.5]
    assert samples["hackbench.throughput_worst.instance1"] == [390 / 1.0]
    # of 80 tasks: 80 * 100 * 100 >> 10
    assert (
        samples["hackbench.throughput"] == samples["hackbench.throughput.instance2"] == [781 / 0.25]
    )
    assert samples["hackbench.throughput_worst"] == [781 / 1.0]
    with pytest.raises(
        ParseError, match=r"1 of 2 hackbench instances printed no time \(the first: 2\)"
    ):
        parse_run(
            "hackbench",
            {"stdout": f"Instance: 1\n{one}Instance: 2\n{two.replace('Time', 'Tim')}"},
            {},
            PROGRAMS,
        )


def test_page_faults_tasks_that_are_missing_make_no_result() -> None:
    line = (
        "page-fault: mode=process tasks=1 cycles=2 bytes=8192 faults=4 seconds=2.0 "
        "faults_per_second=2.00\n"
    )
    assert parse_run("page-fault", {"stdout": line}, {"nr_task": "1"}, PROGRAMS) == {
        "page-fault.per_process_ops": [2.0]
    }
    with pytest.raises(ParseError, match="1 of 2 page-fault tasks"):
        parse_run("page-fault", {"stdout": line}, {"nr_task": "2"}, PROGRAMS)
    with pytest.raises(ParseError, match="2 result lines"):
        parse_run("page-fault", {"stdout": line * 2}, {}, PROGRAMS)


RECORDED = [files_of(raw).get("stdout", "") for raw in SAMPLES]


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """Recorded output with lines dropped, doubled, shuffled and cut: closer to what really
    arrives than random text."""
    lines = draw(st.sampled_from(RECORDED)).splitlines(keepends=True) + draw(
        st.sampled_from(RECORDED)
    ).splitlines(keepends=True)
    kept = draw(st.lists(st.sampled_from(lines), max_size=30)) if lines else []
    return "".join(
        line[: draw(st.integers(0, len(line)))] if draw(st.booleans()) else line for line in kept
    )


PARAMS = st.dictionaries(
    st.sampled_from(["nr_threads", "nr_task", "mode", "iterations"]),
    st.sampled_from(["0", "1", "2", "x", "thread"]),
)


@pytest.mark.parametrize("program", BENCHMARKS)
@given(text=st.text(max_size=200) | damaged(), params=PARAMS)
@example(text="average:" + "9" * 400, params={"nr_task": "0"})
@example(text=UDP_HEAD + "1 1\n1 2 3 4 5 " + "9" * 400 + "\n", params={})
def test_arbitrary_output_gives_finite_samples_or_a_parse_error(
    program: str, text: str, params: dict[str, str]
) -> None:
    try:
        samples = parse_run(
            program, {"stdout": text} | dict.fromkeys(MONITORS, text), params, PROGRAMS
        )
    except ParseError as error:
        samples = {}
        assert "\n" not in str(error)  # noqa: PT017 - what is checked is that nothing else is ever raised
    assert all(abs(value) < limits.SAMPLE_VALUE for values in samples.values() for value in values)


def test_a_metrics_smallest_effect_depends_on_its_class_and_may_depend_on_a_parameter() -> None:
    throughput = find_metric(PROGRAMS, "netperf.Throughput_Mbps")
    counter = find_metric(PROGRAMS, "perf-stat.context-switches")
    assert throughput is not None
    assert counter is not None
    assert [
        throughput.min_effect({"test": test})
        for test in ("UDP_STREAM", "TCP_STREAM", "SCTP_STREAM_MANY")
    ] == [2.0, 4.0, 2.0]
    assert (counter.min_effect({}), counter.better, counter.klass, counter.name) == (
        5.0,
        None,
        "counter",
        "perf-stat.context-switches",
    )


@pytest.mark.parametrize(
    ("test", "threads", "originals"),
    [
        ("TCP_STREAM", "1", {"Throughput_Mbps"}),
        ("TCP_STREAM", "4", {"Throughput_Mbps", "Throughput_total_Mbps"}),
        (
            "UDP_STREAM",
            "1",
            {"Throughput_Mbps", "ThroughputRecv_Mbps", "ThroughputBoth_Mbps"},
        ),
        ("TCP_RR", "1", {"Throughput_tps"}),
        ("TCP_RR", "4", {"Throughput_tps", "Throughput_total_tps"}),
    ],
)
def test_netperf_has_as_many_numbers_as_its_test_and_flows_give(
    test: str, threads: str, originals: set[str]
) -> None:
    unit = "tps" if test.endswith("_RR") else "Mbps"
    names = [
        metric
        for metric in PROGRAMS["netperf"].metrics.values()
        if metric.name.endswith(unit) and (test == "UDP_STREAM" or "Recv" not in metric.name)
    ]
    params = {"test": test, "nr_threads": threads}
    assert {metric.alias_of(params) or metric.name for metric in names} == {
        f"netperf.{name}" for name in originals
    }


def test_an_alias_has_the_number_of_its_target_in_every_recorded_output() -> None:
    seen = set()
    for raw in SAMPLES:
        recorded = json.loads(raw.with_suffix(".expected.json").read_text())
        params, samples = recorded.get("params", {}), recorded.get("samples", {})
        for name, values in samples.items():
            metric = find_metric(PROGRAMS, name)
            if metric is not None and (target := metric.alias_of(params)):
                assert values == pytest.approx(samples[target], rel=1e-4), (raw.name, name)
                seen.add(name.partition(".")[0])
    assert {"netperf", "will-it-scale"} <= seen


def test_the_only_iteration_of_hackbench_is_its_best_worst_and_mean() -> None:
    params = {"iterations": "1"}
    samples = parse_run("hackbench", hackbench("0.37"), params, PROGRAMS)
    for metric in PROGRAMS["hackbench"].metrics.values():
        if metric.name in samples and not metric.headline:
            target = metric.alias_of(params)
            assert target == "hackbench.throughput"
            assert samples[metric.name] == pytest.approx(samples[target], rel=1e-4)
            assert metric.alias_of({"iterations": "2"}) is None


def test_a_metric_that_no_program_gives_is_not_found() -> None:
    assert find_metric(PROGRAMS, "netperf.throughput") is None
    assert find_metric(PROGRAMS, "nothing.at.all") is None


@pytest.mark.parametrize("program", BENCHMARKS)
def test_every_benchmark_has_a_headline_with_a_direction_and_a_unit(program: str) -> None:
    headlines = [metric for metric in PROGRAMS[program].metrics.values() if metric.headline]
    assert headlines
    assert all(metric.better and metric.unit for metric in headlines)


def a_program(directory: Path, answer: str | None) -> dict[str, Program]:
    """A program `own` whose parser returns `answer`, an expression; None: that has no parser."""
    (directory / "own").mkdir()
    (directory / "own" / "meta.yaml").write_text(META)
    if answer is not None:
        (directory / "own" / "parse.py").write_text(
            f"import math\n\ndef parse(files, params):\n    return {answer}\n"
        )
    return load_programs(directory)


def test_a_parser_may_give_one_value_or_several(tmp_path: Path) -> None:
    assert parse_run("own", {}, {}, a_program(tmp_path, "{'a': 1, 'b': [2, 3.5]}")) == {
        "own.a": [1.0],
        "own.b": [2.0, 3.5],
    }


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("{}", "own gives 0 metrics"),
        ("{f'm{n}': 1 for n in range(4001)}", "own gives 4001 metrics"),
        ("{'a': []}", r"own\.a has 0 values"),
        ("{'a': [1.0] * 10001}", r"own\.a has 10001 values"),
        ("{'a': math.nan}", r"own\.a is not a number below 1e\+100"),
        ("{'a': [1.0, math.inf]}", r"own\.a is not a number below 1e\+100"),
        ("{'a': 1e100}", r"own\.a is not a number below 1e\+100"),
        ("{'a b': 1}", "the invalid name 'a b'"),
        ("{'x' * 300: 1}", "the invalid name"),
        (None, "own has no parse.py"),
    ],
)
def test_what_a_parser_gives_is_checked_before_it_is_kept(
    tmp_path: Path, answer: str | None, message: str
) -> None:
    with pytest.raises(ParseError, match=message):
        parse_run("own", {}, {}, a_program(tmp_path, answer))


def test_a_monitor_gives_no_result_of_its_own() -> None:
    with pytest.raises(ParseError, match="perf-stat is a monitor"):
        parse_run("perf-stat", {"perf-stat": "1,,cycles,1,100.00,,"}, {}, PROGRAMS)


META = "describe: x\nkind: benchmark\nscope: micro\n"
ALIASES = (
    META
    + "parameters:\n  p: {kind: text, describe: x, choices: [one, three]}\n"
    + "metrics:\n  a: {describe: x}\n  b: {describe: x, alias_of: {a: p=one}}\n"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            META + "parameter: {}\n",
            "new/meta.yaml:4: the file has an unknown key 'parameter'; did you mean 'parameters'?",
        ),
        (
            META + "metrics:\n  m:\n    describe: x\n    units: s\n",
            "new/meta.yaml:7: metrics 'm' has an unknown key 'units'; did you mean 'unit'?",
        ),
        (
            META + "parameters:\n  p:\n    kind: number\n    describe: x\n",
            "new/meta.yaml:6: kind is 'number', must be one of text, count",
        ),
        (
            META + "parameters:\n  p:\n    describe: x\n",
            "new/meta.yaml:5: parameters 'p' needs 'kind'",
        ),
        (
            META + "parameters:\n  a-b: {kind: text, describe: x}\n",
            "new/meta.yaml:5: parameter 'a-b' must be a valid name of a shell variable",
        ),
        (
            META + "parameters:\n  p: {kind: text, describe: x, choices: [a], default: b}\n",
            "new/meta.yaml:5: default 'b' is not one of the choices",
        ),
        (
            META + "metrics:\n  m:\n    describe: x\n    min_effect_pct: -1\n",
            "new/meta.yaml:7: a smallest effect must be a number in percent",
        ),
        (
            META + "metrics:\n  m:\n    describe: x\n    min_effect_pct: {tcp: 1}\n",
            "new/meta.yaml:7: 'tcp' must be 'default' or 'parameter=value'",
        ),
        (
            META + "metrics:\n  m:\n    describe: x\n    better: more\n",
            "new/meta.yaml:7: better is 'more', must be one of higher, lower",
        ),
        (
            ALIASES + "  m: {describe: x, alias_of: c}\n",
            "new/meta.yaml:9: metrics 'm' is an alias of 'c', which is not a single metric",
        ),
        (
            ALIASES + "  m: {describe: x, unit: s, alias_of: a}\n",
            (
                "new/meta.yaml:9: metrics 'm' is an alias of a, but differs from it in unit, "
                "class or direction"
            ),
        ),
        (
            ALIASES + "  m: {describe: x, headline: true, alias_of: a}\n",
            (
                "new/meta.yaml:9: metrics 'm' is an alias of a, but no headline, family or "
                "target itself"
            ),
        ),
        (
            ALIASES + "  m: {describe: x, alias_of: {a: q=1}}\n",
            "new/meta.yaml:9: metrics 'm' is an alias of a where 'q' is set, which is not a param",
        ),
        (
            ALIASES + "  m: {describe: x, alias_of: {a: p=tw*}}\n",
            "new/meta.yaml:9: metrics 'm' is an alias of a where p=tw*, which no choice fits",
        ),
        (
            ALIASES + "  m: {describe: x, alias_of: {a: p}}\n",
            "new/meta.yaml:9: 'p' must be 'parameter=value' or 'parameter=value|value'",
        ),
        (
            ALIASES + "  m: {describe: x, alias_of: {a: }}\n",
            "new/meta.yaml:9: conditions need at least one 'parameter=value'",
        ),
        (
            ALIASES + "  m: {describe: x, alias_of: b}\n",
            "new/meta.yaml:9: metrics 'm' is an alias of b, which is an alias of a where p=one:"
            " name a itself",
        ),
        ("kind: benchmark\n", "new/meta.yaml:1: the file needs 'describe'"),
        (META + "parameters: 3\n", "new/meta.yaml:4: parameters must be a table"),
        ("", "new/meta.yaml:1: must hold one document"),
        ("- a\n", "new/meta.yaml:1: the file must be a table"),
    ],
)
def test_a_wrong_meta_yaml_is_refused_with_file_and_line(
    tmp_path: Path, text: str, message: str
) -> None:
    meta = tmp_path / "new" / "meta.yaml"
    meta.parent.mkdir()
    meta.write_text(text)
    with pytest.raises(ProgramError) as error:
        load_program(meta)
    assert message in str(error.value)


def test_options_that_a_program_needs_may_have_the_prefix_of_a_configuration(
    tmp_path: Path,
) -> None:
    meta = tmp_path / "new" / "meta.yaml"
    meta.parent.mkdir()
    meta.write_text(META + "kconfig_needed: [CONFIG_INET, FUNCTION_PROFILER]\n")
    assert load_program(meta).options({}) == ("INET", "FUNCTION_PROFILER")
    meta.write_text(META + "kconfig_needed: {CONFIG_INET: , NUMA: test=numa|vm-*}\n")
    assert load_program(meta).options({"test": "mmap"}) == ("INET",)
    assert load_program(meta).options({"test": "vm-rw"}) == ("INET", "NUMA")
    meta.write_text(META + "kconfig_needed: [CONFIG_INET=y]\n")
    with pytest.raises(ProgramError, match="'CONFIG_INET=y' is not an option"):
        load_program(meta)
