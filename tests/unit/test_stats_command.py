"""Rules of `swingbot stats compare` and of the files it reads."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import example, given, settings
from hypothesis import strategies as st

from swingbot.app.commands.stats import stats
from swingbot.core.stats.parse import BadSamples, form_of, parse_file
from tests.amount import examples

WORSE = ["--base", "100,101;99,102;101,100;100,101", "--head", "90,91;92,90;91,93;91,92"]
ROW = {"better", "base", "head", "change_pct", "interval_pct", "verdict", "reason", "level"}


def run(*args: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(stats, ["compare", *args], input=stdin)


def row(*args: str, stdin: str | None = None) -> dict[str, Any]:
    result = run(*args, "--json", stdin=stdin)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_the_row_is_a_comparison_row_without_ids() -> None:
    found = row(*WORSE)
    assert found.keys() >= ROW
    assert found["verdict"] == "worse"
    assert found["base"] == {
        "boots": 4,
        "runs": 8,
        "mean": 100.5,
        "stddev": 0.0,
        "stddev_within": pytest.approx(1.225, abs=1e-3),
    }
    assert found["change_pct"] == pytest.approx(
        100 * (found["head"]["mean"] / found["base"]["mean"] - 1)
    )


def test_lower_is_better_where_asked_and_for_times() -> None:
    assert row(*WORSE, "--lower-is-better")["verdict"] == "better"
    assert row(*WORSE, "--class", "time")["verdict"] == "better"


def test_a_person_reads_levels_spreads_interval_and_reason() -> None:
    said = run("--base", "100,101;99,102", "--head", "100,103;98,99").stdout
    assert said.startswith(
        "-0.50 %, 145 more boots a side needed\n  base 100.50 +- 0 between boots, +- 1.581 within boots (2 "
        "boots, 4 runs)\n"
    )
    assert "95 % interval" in said
    assert "more boots a side would settle it" in said


@pytest.mark.parametrize(
    ("base", "head"),
    [
        ("102.5;102.5", "102.58;102.6"),
        ("1e-9;1e-9", "1.1e-9;1.1e-9"),
        ("1234567;1234568", "1234999;1234999"),
        ("3;3", "4000;4000"),
    ],
)
def test_the_printed_percentage_can_be_recomputed_from_the_printed_levels(
    base: str, head: str
) -> None:
    lines = run("--base", base, "--head", head, "--min-effect", "1000000").stdout.splitlines()
    levels = [float(line.split()[1]) for line in lines[1:3]]
    assert float(lines[0].split("(")[1].split(" ")[0]) == pytest.approx(
        100 * (levels[1] / levels[0] - 1), abs=0.02, rel=1e-3
    )


@pytest.mark.parametrize(
    ("args", "status"),
    [
        (WORSE, 3),
        ([*WORSE, "--lower-is-better"], 0),
        (["--base", "1", "--head", "2"], 4),
        (["--base", "0;1;2", "--head", "1;2;3", "--class", "time"], 4),
    ],
)
def test_the_exit_code_tells_the_verdict_when_asked(args: list[str], status: int) -> None:
    assert run(*args, "--exit-code").exit_code == status
    assert run(*args).exit_code == 0


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "give --base and --head, or --file"),
        (["--base", "1;2"], "give --base and --head, or --file"),
        (["--base", "1,,2", "--head", "1"], "boot 1: a run has no value"),
        (["--base", "1;;2", "--head", "1"], "boot 2: a run has no value"),
        (["--base", "1;nan", "--head", "1"], "not a finite number"),
        (["--base", "1;inf", "--head", "1"], "not a finite number"),
        (["--base", "1;1e999", "--head", "1"], "not a finite number"),
        (["--base", "ten", "--head", "1"], "'ten' is not a number"),
        (["--base", "", "--head", "1"], "no samples"),
        ([*WORSE, "--min-effect", "nan"], "--min-effect must be between 0 and 1e6"),
        ([*WORSE, "--min-effect", "-1"], "--min-effect must be between 0 and 1e6"),
        ([*WORSE, "--alpha", "1"], "--alpha must be between 0 and 0.5"),
        ([*WORSE, "--file", "-"], "give --base and --head, or --file"),
        ([*WORSE, "--class", "colour"], "'colour' is not one of"),
        (["--file", "no-such-file"], "does not exist"),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(args: list[str], said: str) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert said in result.stderr
    assert "Traceback" not in result.output


def test_a_drift_is_invalid_unless_the_boots_are_unordered() -> None:
    sides = ["--base", "100;101;102;103;104;105", "--head", "100.5;101.5;102.5;103.5;104.5;105.5"]
    assert row(*sides)["verdict"] == "invalid"
    assert row(*sides, "--unordered")["verdict"] == "unclear"


_LONG = [
    *(
        ("base", k, v)
        for k, v in ((0, "100"), (0, "101"), (1, "99"), (1, "102"), (2, "101"), (2, ""))
    ),
    *(
        ("head", k, v)
        for k, v in ((0, "90"), (0, "91"), (1, "92"), (1, "90"), (2, "91"), (2, "93"))
    ),
]
TABLES = {
    "json": (
        '{"base": [[100, 101], [99, 102], [101, null]], "head": [[90, 91], [92, 90], [91, 93]]}'
    ),
    "csv": "side,boot,value\n" + "".join(f"{side},{boot},{value}\n" for side, boot, value in _LONG),
    "tsv": "base\thead\n100 101\t90 91\n99 102\t92 90\n101 -\t91 93\n",
}


@pytest.mark.parametrize("form", TABLES)
def test_a_file_in_any_form_is_the_same_samples(form: str, tmp_path: Path) -> None:
    (tmp_path / f"runs.{form}").write_text(TABLES[form])
    from_file, from_stdin = (
        row("--file", str(tmp_path / f"runs.{form}")),
        row("--file", "-", stdin=TABLES[form]),
    )
    assert from_file == from_stdin
    assert from_file["base"]["runs"] == 5
    assert "1 of 6 runs of base gave no result" in from_file["reason"]
    typed = row("--base", "100,101;99,102;101", "--head", "90,91;92,90;91,93")
    assert [from_file[key] for key in ("base", "head", "change_pct")] == [
        typed[key] for key in ("base", "head", "change_pct")
    ]


def test_a_gap_in_a_paired_table_leaves_out_its_partner() -> None:
    found = row("--file", "-", "--paired", stdin="base,head\n100,90\n110,\n105,94.5\n95,85.5\n")
    assert (found["base"]["boots"], found["head"]["boots"]) == (3, 3)
    assert "1 boot without a partner" in found["reason"]
    assert found["verdict"] == "worse"


@pytest.mark.parametrize(
    ("text", "form", "said"),
    [
        ("", "csv", "empty"),
        ("{", "json", "not valid JSON"),
        ("[1, 2]", "json", "no base and head"),
        ('{"base": 3, "head": [1]}', "json", "base is not a list"),
        ('{"base": [[true]], "head": [1]}', "json", "boot 1: true is not a number"),
        ('{"base": [[NaN]], "head": [1]}', "json", "NaN is not a finite number"),
        ('{"base": [[1e999]], "head": [1]}', "json", "not a finite number"),
        ('{"base": [{"x": 1}], "head": [1]}', "json", "is not a number"),
        ('{"base": [[null]], "head": [1]}', "json", "the base has no values"),
        ('{"base": [], "head": [1]}', "json", "the base has no values"),
        ("[" * 100_000, "json", "not valid JSON"),
        ("a,b\n1,2\n", "csv", "the first line names a, b"),
        ("side,boot,value\nleft,0,1\n", "csv", "side is 'left'"),
        ("side,boot,value\nbase,0,1,5\nhead,0,1\n", "csv", "decimal comma"),
        ("side,boot,value\nbase,1,1\nbase,01,1\nhead,0,1\n", "csv", "two spellings"),
        ("side,boot,value\nbase,1,x\nhead,0,1\n", "csv", "'x' is not a number"),
    ],
)
def test_a_file_that_is_wrong_is_explained(text: str, form: str, said: str) -> None:
    with pytest.raises(BadSamples, match=said):
        parse_file(text, form)


def test_a_file_that_is_no_text_is_refused() -> None:
    result = run("--file", "-", stdin=b"\xff\xfe\x00")
    assert (result.exit_code, result.stderr) == (2, "swingbot: stdin is not valid UTF-8 text\n")


@settings(max_examples=examples(80))
@given(text=st.text(max_size=80), name=st.sampled_from(["-", "x.json", "x.csv", "x.tsv"]))
@example(text='"', name="-")
def test_any_text_is_samples_or_a_stated_error(text: str, name: str) -> None:
    try:
        sides = parse_file(text, form_of(name, text))
    except BadSamples:
        return
    assert all(any(b.values for b in side) for side in sides)


BLOCKS = ["--base", "100;100.1;99.9;100.2", "--head", "95;95.1;94.9;95.2"]


def test_the_order_of_boots_tells_turns_from_blocks() -> None:
    assert (row(*BLOCKS)["verdict"], row(*BLOCKS)["order"]) == ("worse", "assumed in turns")
    assert "assumed: boots of base and head in turns that mirror, b h h b" in run(*BLOCKS).stdout
    turns = run(*BLOCKS, "--order", "bhhb bhhb").stdout
    assert turns.startswith("5.0% worse")
    assert "assumed" not in turns
    found = row(*BLOCKS, "--order", "bbbbhhhh")
    assert (found["verdict"], found["interval_pct"], found["order"]) == ("unclear", None, "given")
    assert "boot the two in turns that mirror: b h h b" in found["reason"]
    assert found["more_boots"] is None


def every_other_boot_slow(order: str) -> dict[str, str]:
    """Equal kernels on a testbox whose every other boot is 5 % slow, boots in this order."""
    sides: dict[str, list[str]] = {"b": [], "h": []}
    for n, side in enumerate(order):
        sides[side].append(f"{(95 if n % 2 else 100) + 0.013 * (n * 7 % 11):.3f}")
    return {side: ";".join(values) for side, values in sides.items()}


def test_strict_turns_are_not_trusted_and_mirrored_ones_claim_nothing() -> None:
    def of(order: str) -> list[str]:
        sides = every_other_boot_slow(order)
        return ["--base", sides["b"], "--head", sides["h"], "--order", order]

    strict = of("bh" * 8)
    assert (row(*strict)["verdict"], row(*strict)["order"]) == ("worse", "strict turns")
    said = run(*strict).stdout
    assert "a testbox whose every other boot is slow looks like this change" in said
    equal = run("--base", "100;101;100", "--head", "101;100;101", "--order", "bhbhbh").stdout
    assert "every other boot is slow may hide or feign a change" in equal
    assert "this change" not in equal
    mirrored = of("bhhb" * 4)
    assert row(*mirrored)["verdict"] not in ("worse", "better")
    assert row(*mirrored)["order"] == "given"
    assert "every other boot" not in run(*mirrored).stdout
    assert row(*of("hb" * 8), "--unordered")["order"] == "given"


IN_BLOCKS = {
    "json": (
        '{"base": [[100], [100.1], [99.9], [100.2]], "head": [95, 95.1, 94.9, 95.2], '
        '"order": "bbbbhhhh"}'
    ),
    "times.json": json.dumps(
        {
            "base": [{"runs": [100 + k / 10], "time": k} for k in range(4)],
            "head": [{"runs": [95 + k / 10], "time": f"2026-11-23T08:3{k}"} for k in range(4)],
        }
    ),
    "csv": "side,boot,value,time\n"
    + "".join(f"base,{k},{100 + k / 10},2026-11-23T08:0{k}\n" for k in range(4))
    + "".join(f"head,{k},{95 + k / 10},2026-11-23T08:1{k}Z\n" for k in range(4)),
    "wide.csv": "base,head,base_time,head_time\n"
    + "".join(f"{100 + k / 10},{95 + k / 10},{k},{10 + k}\n" for k in range(4)),
}


@pytest.mark.parametrize("name", IN_BLOCKS)
def test_a_file_tells_when_boots_ran(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(IN_BLOCKS[name])
    found = row("--file", str(tmp_path / name))
    assert found["order"] == "given"
    assert "all boots of one side ran before those of the other" in found["reason"]


@pytest.mark.parametrize(
    ("text", "form", "said"),
    [
        ('{"base": [1], "head": [1], "order": 3}', "json", "must be a string"),
        ('{"base": [1], "head": [1], "order": "bx"}', "json", "letters b"),
        (
            '{"base": [1], "head": [1, 2], "order": "bh"}',
            "json",
            "has 1 boots of head, but there are 2",
        ),
        ('{"base": [{"runs": [1], "time": 2}], "head": [1]}', "json", "for all or for none"),
        ('{"base": [{"runs": [1], "time": true}], "head": [1]}', "json", "the time must be"),
        ('{"base": [{"runs": [1], "time": "now"}], "head": [1]}', "json", "'now' is not a number"),
        ('{"base": [{"mean": 1, "runs": 1}], "head": [1]}', "json", "at least 2"),
        ('{"base": [{"mean": 1, "runs": 5}], "head": [1]}', "json", "error_pct is the standard"),
        ('{"base": [{"mean": 1, "runs": 5, "error_pct": -1}], "head": [1]}', "json", "negative"),
        (
            '{"base": [{"mean": null, "runs": 5, "error_pct": 1}], "head": [1]}',
            "json",
            "a single number",
        ),
        ("side,boot,value,time\nbase,0,1,5\nhead,0,1,\n", "csv", "for all or for none"),
        ("base,head,base_time,head_time\n1,1,soon,2\n", "csv", "'soon' is not a number"),
    ],
)
def test_a_wrong_order_is_explained(text: str, form: str, said: str) -> None:
    with pytest.raises(BadSamples, match=said):
        parse_file(text, form)


# As perf 6.1 printed it for `perf stat -r 5 -e task-clock,page-faults true`.
PERF = """
 Performance counter stats for 'true' (5 runs):

              0.60 msec task-clock                       #    0.088 CPUs utilized            ( +-  4.59% )
                50      page-faults                      #   81.831 K/sec                    ( +-  0.49% )

           0.00685 +- 0.00255 seconds time elapsed  ( +- 37.19% )
"""


def perf_files(tmp_path: Path, *texts: str) -> list[str]:
    paths = [tmp_path / f"perf-{k}" for k in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    half = len(texts) // 2
    return [
        word
        for side, part in (("--base-perf", paths[:half]), ("--head-perf", paths[half:]))
        for path in part
        for word in (side, str(path))
    ]


def test_repeated_perf_stat_is_a_boot_of_so_many_runs_with_their_spread(tmp_path: Path) -> None:
    slower = PERF.replace("                50      page", "                55      page")
    found = row(*perf_files(tmp_path, *[PERF] * 4, *[slower] * 4), "--event", "page-faults")
    assert (found["base"]["boots"], found["base"]["runs"]) == (4, 20)
    assert found["base"]["mean"] == 50.0
    assert found["base"]["stddev_within"] == pytest.approx(50 * 0.0049 * 5**0.5)
    assert found["change_pct"] == pytest.approx(10.0)
    assert found["verdict"] == "better"


def test_the_spread_that_perf_prints_is_used(tmp_path: Path) -> None:
    """Boots that agree by chance still have at least the spread of their runs."""
    rough = PERF.replace("0.49%", "20.49%")
    slower = rough.replace("                50      page", "                55      page")
    args = ["--event", "page-faults"]
    assert row(*perf_files(tmp_path, *[rough] * 4, *[slower] * 4), *args)["verdict"] == "unclear"
    once = [re.sub(r"\( \+-.*\)| \(5 runs\)", "", text) for text in (rough, slower)]
    found = row(*perf_files(tmp_path, *[once[0]] * 4, *[once[1]] * 4), *args)
    assert (found["verdict"], found["base"]["runs"]) == ("better", 4)


def test_perf_output_that_does_not_tell_its_repetitions_needs_them(tmp_path: Path) -> None:
    files = perf_files(tmp_path, *["49,,page-faults,0.50%,957678,100.00,73.761,K/sec\n"] * 4)
    assert "give --repetitions N" in run(*files).stderr
    assert row(*files, "--repetitions", "5")["base"]["runs"] == 10


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([], "more than one event; give --event, one of: page-faults, seconds-elapsed, task-clock"),
        (["--event", "cycles"], "no event 'cycles'"),
        (["--base", "1"], "cannot be combined with"),
    ],
)
def test_perf_files_that_cannot_be_compared_are_explained(
    more: list[str], said: str, tmp_path: Path
) -> None:
    result = run(*perf_files(tmp_path, PERF, PERF), *more)
    assert (result.exit_code, said in result.stderr) == (2, True)


def test_one_side_of_perf_output_is_not_enough(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("nothing here")
    assert "once for each boot" in run("--base-perf", str(tmp_path / "a")).stderr
    files = perf_files(tmp_path, "nothing", "here")
    assert "no perf stat counters found" in run(*files).stderr


def test_a_lone_zero_and_an_extrapolated_count_are_said(tmp_path: Path) -> None:
    dead = run("--base", "9400,9410;9420,9390", "--head", "9401,9409;0,9390").stdout
    assert "1 run of 0 far below all others: leave out a run that did nothing" in dead
    assert "of 0 far" not in run("--base", "0,3;1,0", "--head", "2,0;0,4").stdout
    files = []
    for name, share in (("a", "100.00"), ("b", "10.00")):
        (tmp_path / name).write_text(
            f"1419380,,cycles,139903,{share},,\n9,,page-faults,1,50.00,,\n"
        )
        files += [f"--{'base' if name == 'a' else 'head'}-perf", str(tmp_path / name)]
    said = run(*files, "--event", "cycles")
    assert "extrapolated by perf: counted in 10 % of the time" in said.stdout
    assert json.loads(run(*files, "--event", "cycles", "--json").stdout)["running_pct"] == 10
