"""Rules of `swingbot jobs expand` and `swingbot jobs lint`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from swingbot.app.cli import main
from swingbot_jobs.language.lint import lint
from swingbot_jobs.language.values import NominalTestbox
from tests.programs import PROGRAMS

JOBS = Path(__file__).resolve().parents[2] / "jobs"
ONE, TWO = NominalTestbox("one", "one", 1), NominalTestbox("two", "two", 2)


def run(*words: object) -> Result:
    return CliRunner().invoke(main, ["jobs", *map(str, words)])


def found(text: str, *testboxes: NominalTestbox) -> list[str]:
    return [
        f"{finding.severity}: {finding.text}"
        for finding in lint(text, "j.yaml", testboxes or (NominalTestbox(),), PROGRAMS).findings
    ]


def test_a_good_job_has_no_findings_and_a_count_for_each_testbox() -> None:
    linted = lint("hackbench:\n  ipc: [pipe, socket]\n", "j.yaml", (ONE, TWO), PROGRAMS)
    assert (linted.good, linted.unit_jobs, linted.findings) == (True, {"one": 2, "two": 2}, ())


def test_all_that_is_wrong_is_reported_at_once() -> None:
    text = "hackbench:\n  ipc: [pipes, pipe, sockets]\n  nr_threads: 0\n---\nnr_thread: 3\n"
    assert [line.partition(": must")[0].partition(";")[0] for line in found(text)] == [
        "error: j.yaml:5: unknown key 'nr_thread'",
        "error: j.yaml:2: ipc 'pipes'",
        "error: j.yaml:2: ipc 'sockets'",
        "error: j.yaml:3: nr_threads '0'",
    ]


def test_a_share_that_leaves_no_thread_is_reported_for_the_testbox_that_has_too_few_cpus() -> None:
    text = "hackbench:\n  nr_threads: [50%, 100%]\n"
    linted = lint(text, "j.yaml", (ONE, TWO), PROGRAMS)
    assert linted.unit_jobs == {"two": 2}
    [finding] = linted.findings
    assert finding.text.startswith(
        "j.yaml:2: nr_threads '50%': is less than 1 on testbox one, which has 1 CPUs"
    )


@pytest.mark.parametrize(
    "text",
    [
        "hackbench:\n---\nruns: 2\n",
        "hackbench:\n  loops: 2\n---\nhackbench:\n  fds: 2\n",
        f"will-it-scale:\n  nr_task: 1\n  mode: process\n  test: [{'a' * 31}x, {'a' * 31}y]\n",
        "will-it-scale:\n  nr_task: 1\n  mode: process\n  test: [a/b, a_b]\n",
    ],
)
def test_unit_jobs_that_would_share_a_name_are_an_error(text: str) -> None:
    [finding] = found(text)
    assert "are both called j-" in finding


def test_a_default_that_is_not_lkps_is_a_remark_and_no_error() -> None:
    linted = lint("will-it-scale:\n  test: brk1\n", "j.yaml", (NominalTestbox(),), PROGRAMS)
    assert linted.good
    assert [finding.text.partition(",")[0] for finding in linted.findings] == [
        "j.yaml:1: mode is not set",
        "j.yaml:1: nr_task is not set",
    ]


def test_lint_says_what_is_wrong_in_each_file_and_ends_with_2(tmp_path: Path) -> None:
    for name, text in {
        "good": "hackbench:\n",
        "bad": "hackbench:\nx: 1\n",
        "takes": "<<: bad.yaml\n",
        "lost": "<<: none.yaml\n",
    }.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    done = run("lint", *sorted(tmp_path.glob("*.yaml")))
    assert done.exit_code == 2
    assert [line.partition(";")[0] for line in done.stdout.splitlines()] == [
        "error: bad.yaml:2: unknown key 'x'",
        (
            "error: lost.yaml:1: the file 'none.yaml' that is included here does not exist, "
            "neither in the directory of this file nor among the other jobs"
        ),
        "error: takes.yaml: bad.yaml:2: unknown key 'x'",
        "good.yaml: 1 unit job on nominal",
        "3 of 4 job files have errors",
    ]


def test_two_files_of_one_name_give_their_results_one_name(tmp_path: Path) -> None:
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "j.yaml").write_text("hackbench:\n")
    done = run("lint", tmp_path / "a" / "j.yaml", tmp_path / "b" / "j.yaml", "--json")
    assert done.exit_code == 2
    [finding] = json.loads(done.stdout)["findings"]
    assert "/b/j.yaml:1: has the same job name as " in finding["text"]


def test_a_job_that_no_kernel_there_can_run_is_a_remark_with_the_fragment() -> None:
    linted = run("lint", "vm-swap.yaml", "--testbox", "vm-mm", "--testbox", "vm-tcg")
    assert linted.output.splitlines()[0] == (
        "remark: vm-swap.yaml:17: requests on vm-tcg are refused: kernel configuration vm-x86_64"
        " lacks options that swap: zram needs: CONFIG_SWAP=y, CONFIG_ZRAM=y; add the fragment mm to"
        " the kernel configuration of the tree or the testbox"
    )
    assert linted.exit_code == 0


def test_every_shipped_job_is_good() -> None:
    wired = {path for path in JOBS.glob("*.yaml") if "cluster: cs-vm" in path.read_text()}
    for testbox, files in (("vm-tcg", {*JOBS.glob("*.yaml")} - wired), ("cs-vm", wired)):
        done = run("lint", *sorted(files), "--testbox", testbox, "--json")
        findings = json.loads(done.stdout)["findings"]
        # two of those for servers take a day and more where a processor is emulated
        long = [one for one in findings if "so requests there are refused" in one["text"]]
        assert not any(one["text"].startswith("vm-") for one in long)
        # kernels of these testboxes have no swap
        others = [one["text"] for one in findings if one not in long]
        assert not [text for text in others if "; add the fragment mm to " not in text]
        assert done.exit_code == 0


def test_expand_names_result_roots_as_lkp_does_and_marks_what_is_not_known_yet(
    tmp_path: Path,
) -> None:
    (tmp_path / "hackbench.yaml").write_text(
        "hackbench:\n  ipc: pipe\n  nr_threads: 50%\n  iterations: 8\n  mode: process\n"
    )
    done = run("expand", tmp_path / "hackbench.yaml", "--testbox", "vm-tcg", "--json")
    [job] = json.loads(done.stdout)
    assert job["name"] == "hackbench-pipe-8-process-50%"
    assert (
        job["result_root"]
        == "result/hackbench/pipe-8-process-50%/vm-tcg/{rootfs}/{kconfig}/{compiler}/{commit}/{run}"
    )
    assert job["params"]["nr_threads"] == "1"
    assert job["boot_seconds"] > 10


def test_expand_tells_a_person_names_values_and_how_many_runs(tmp_path: Path) -> None:
    (tmp_path / "j.yaml").write_text("runs: 2\nhackbench:\n  ipc: [pipe, socket]\n")
    lines = run(
        "expand", tmp_path / "j.yaml", "--testbox", "vm-icount", "--set", "loops=7"
    ).stdout.splitlines()
    assert lines[0] == "j-pipe-7"
    assert lines[2].startswith("    hackbench, 2 runs: datasize=100 fds=20 ipc=pipe")
    assert lines[-1].startswith("2 unit jobs on vm-icount, 4 runs per boot, about ")


def test_expand_tells_what_else_belongs_to_a_unit_job(tmp_path: Path) -> None:
    (tmp_path / "j.yaml").write_text(
        "warmup: 1\ncpufreq_governor: performance\nvmstat:\nmeminfo:\nhackbench:\n  loops: 7\n"
    )
    lines = run("expand", tmp_path / "j.yaml", "--testbox", "vm-icount").stdout.splitlines()
    assert lines[2].startswith(
        "    hackbench, 1 run after 1 warm-up, 1 with vmstat; governor is performance: datasize=100"
    )
    assert lines[3] == "1 unit job on vm-icount, 3 runs per boot, about 3 min 52 s"


def test_expand_refuses_an_unknown_testbox_and_a_wrong_job_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "j.yaml").write_text("hackbench:\nx: 1\n")
    assert run("expand", tmp_path / "j.yaml", "--testbox", "vm-tgc").stderr.startswith(
        "swingbot: testbox 'vm-tgc' does not exist; the testboxes are "
    )
    done = run("expand", tmp_path / "j.yaml", "--testbox", "vm-tcg")
    assert (done.exit_code, done.stderr.partition(";")[0]) == (
        2,
        "swingbot: j.yaml:2: unknown key 'x'",
    )
