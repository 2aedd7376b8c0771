"""The engine lkp on a worker: the script that calls `lkp run`, and the errors when it cannot.

A stand-in writes the files of LKP. The real one runs in tests/conformance if LKP_SRC is set.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from swingbot.core.model.records import JobFile
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.service.ports import RequestError, Transaction
from swingbot.service.watch.resolve_jobs import resolve_parts
from swingbot_jobs import codec
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import load_programs
from swingbot_jobs.reading.lkp import read_lkp
from swingbot_jobs.reading.parse import parse_results, read_results
from swingbot_jobs.reading.result import ParseError, Results
from swingbot_jobs.testbox.boot_time import boot_seconds
from swingbot_jobs.testbox.definition import LkpEngine, Testbox
from swingbot_jobs.testbox.file import load
from swingbot_jobs.testbox.table import TestboxError
from swingbot_worker import InfraError, engine
from swingbot_worker.engine import lkp
from swingbot_worker.rootfs.packages import Package, closure, installed
from swingbot_worker.site import from_environment
from tests.contract.labs import Lab, played_lab
from tests.unit.test_lkp import HACKBENCH, SAMPLES, STATS, STDOUT

SITE = from_environment()
PROGRAMS = load_programs(SITE.jobs / "programs")
KERNEL = {"commit": "4f0c" * 10, "kconfig": "vm-x86_64", "compiler": "gcc-12"}
TESTBOX = """name: box
tbox_group: box
driver: command
command: {argv: [boot-it]}
model: a model
nr_cpu: 2
memory_mb: 2048
"""
# `lkp run -o LINK -s ... FILE` of the stand-in: makes a result root as LKP does, then what the test
# wants.
STAND_IN = """#!/bin/sh
echo "$@" >>"$HERE/asked"
root=$HERE/result/hackbench/defaults/$(hostname)/debian/defconfig/gcc/v6.1/0
mkdir -p "$root"
while [ "$#" -gt 1 ]; do [ "$1" != -o ] || link=$2; shift; done
cp "$1" "$HERE/job.yaml"
cp "$HERE/stdout" "$root/hackbench"
cp "$HERE/stats" "$root/stats.json"
echo '{"hackbench.throughput": [0, 0, 1]}' >"$root/matrix.json"
"""
LINK = 'ln -s "$root" "$link"\n'


def stand_in(place: Path, then: str = LINK) -> LkpEngine:
    """A directory that looks like lkp-tests with hackbench, and what LKP's paths hold."""
    src = place / "lkp-src"
    for name in ("bin/lkp", "bin/event/wakeup", "programs/hackbench/run"):
        (src / name).parent.mkdir(parents=True, exist_ok=True)
        (src / name).write_text(STAND_IN + then)
        (src / name).chmod(0o755)
    (src / "hosts").mkdir()
    (src / "hosts" / os.uname().nodename).write_text("nr_cpu: 2\n")
    (place / "lkp" / "benchmarks" / "hackbench").mkdir(parents=True)
    (place / "bin").mkdir()
    (place / "bin" / "ruby").symlink_to("/bin/true")
    (place / "stdout").write_text(STDOUT)
    (place / "stats").write_text(json.dumps(STATS))
    return LkpEngine(src=str(src))


def run_here(place: Path, made: LkpEngine, runs: int = 1) -> Results:
    """Run the script on this machine, as a command driver would, and read what it sent."""
    job = UnitJob(name="hackbench-a", program="hackbench", params=HACKBENCH.params, runs=runs)
    for entry in lkp.job_entries(made, [job], SITE, KERNEL, alone=False):
        path = place / entry.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(entry.content)
    env = {
        "SWINGBOT_WORK": str(place / "work"),
        "SWINGBOT_LKP_ROOT": str(place / "lkp"),
        "HERE": str(place),
        "PATH": f"{place / 'bin'}:{os.environ['PATH']}",
    }
    subprocess.run(
        ["sh", "-c", f'exec sh "{place}/job/run.sh" 3>"{place}/results.tar"'],
        env=os.environ | env,
        check=True,
        timeout=60,
    )
    return read_results(place / "results.tar")


# --- the script


def test_a_run_is_one_lkp_run_with_our_commit_kconfig_and_compiler(tmp_path: Path) -> None:
    results = run_here(tmp_path, stand_in(tmp_path), runs=2)
    asked = (tmp_path / "asked").read_text().splitlines()
    assert len(asked) == 2
    assert f"-s commit: {KERNEL['commit']} -s kconfig: vm-x86_64 -s compiler: gcc-12 " in asked[0]
    assert "hackbench:\n" in (tmp_path / "job.yaml").read_text()
    assert f"arch: {os.uname().machine}\n" in (tmp_path / "job.yaml").read_text()
    parsed = parse_results(
        tmp_path / "results.tar",
        [UnitJob(name="hackbench-a", program="hackbench", params=HACKBENCH.params, runs=2)],
        PROGRAMS,
    )
    assert [(run.status, run.samples) for run in parsed] == [("ok", SAMPLES)] * 2
    kept = results.runs["hackbench-a", 1]
    assert kept["lkp.result_root"].endswith("/debian/defconfig/gcc/v6.1/0\n")
    assert {"engine", "stdout", "lkp.stats.json", "lkp.asked.yaml", "rc", "seconds"} <= kept.keys()


def test_lkp_s_matrices_are_not_even_sent_and_its_numbered_result_is_taken_away(
    tmp_path: Path,
) -> None:
    results = run_here(tmp_path, stand_in(tmp_path))
    assert not [name for files in results.runs.values() for name in files if "matrix" in name]
    assert not list(tmp_path.glob("result/*/*/*/*/*/*/*/0"))


def test_a_failed_test_has_its_exit_status_though_lkp_run_ended_with_0(tmp_path: Path) -> None:
    fails = (
        'printf "test.hackbench.exit_code.99: 1\\nexit_fail: 1\\n" >"$root/last_state"; '
        'echo "{}" >"$root/stats.json"\n'
    ) + LINK
    results = run_here(tmp_path, stand_in(tmp_path, fails))
    assert results.runs["hackbench-a", 0]["rc"] == "99\n"


def test_a_run_of_which_nothing_is_left_does_not_get_the_result_of_the_last_one(
    tmp_path: Path,
) -> None:
    once = (
        f'[ "$(wc -l <"$HERE/asked")" = 1 ] || '
        f'{{ echo "WARN -- x" >&2; echo "an error: cannot create more result_roots"; exit 0; }}\n'
        f"{LINK}"
    )
    results = run_here(tmp_path, stand_in(tmp_path, once), runs=2)
    first, second = (results.runs["hackbench-a", number] for number in (0, 1))
    assert (first["rc"], second["rc"]) == ("0\n", "1\n")
    assert (
        second["stderr"].splitlines()[-1]
        == "lkp run left no result: an error: cannot create more result_roots"
    )
    assert "lkp.stats.json" not in second


def test_a_file_too_large_for_a_run_is_left_out_and_named(tmp_path: Path) -> None:
    grows = f'head -c 1000001 /dev/zero | tr "\\0" " " >"$root/stats.json"\n{LINK}'
    results = run_here(tmp_path, stand_in(tmp_path, grows))
    files = results.runs["hackbench-a", 0]
    assert files["lkp.left_out"] == "stats.json has 1000001 bytes and was omitted\n"
    with pytest.raises(ParseError, match="stats.json has 1000001 bytes and was omitted"):
        read_lkp(PROGRAMS["hackbench"], files, dict)


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        ("lkp-src/bin/lkp", "lkp-tests is not at"),
        (
            "lkp-src/programs/hackbench/run",
            "has no programs/hackbench/run; versions before March 2026 have a different layout",
        ),
        ("lkp-src/bin/event/wakeup", "bin/event/wakeup of the lkp-tests at"),
        ("lkp/benchmarks/hackbench", "LKP's benchmark is not in"),
        (f"lkp-src/hosts/{os.uname().nodename}", "LKP does not know the host"),
    ],
)
def test_what_lkp_lacks_is_said_and_nothing_is_run(tmp_path: Path, gone: str, said: str) -> None:
    made = stand_in(tmp_path)
    path = tmp_path / gone
    path.rmdir() if path.is_dir() else path.unlink()
    results = run_here(tmp_path, made)
    assert said in results.facts[engine.PROBLEM]
    assert results.runs == {}
    assert not (tmp_path / "asked").exists()


def test_another_commit_than_the_testbox_wants_is_refused_on_the_testbox(tmp_path: Path) -> None:
    made = stand_in(tmp_path)
    git = ["git", "-C", made.src, "-c", "user.name=a", "-c", "user.email=a@b.example"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run([*git, *words], check=True)
    head = subprocess.run(
        [*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    wanted = "0" * 10 if not head.startswith("0" * 10) else "1" * 10
    results = run_here(tmp_path, LkpEngine(src=made.src, commit=wanted))
    assert (
        results.facts[engine.PROBLEM].strip()
        == f"the lkp-tests at {made.src} is {head}, not {wanted}"
    )
    assert (
        run_here(tmp_path, LkpEngine(src=made.src, commit=head[:12]))
        .facts["version.lkp-tests"]
        .strip()
        == head
    )


@pytest.mark.parametrize("alone", [True, False])
def test_the_script_has_nothing_that_shellcheck_knows_to_be_wrong(
    tmp_path: Path, alone: bool
) -> None:
    script = tmp_path / "run.sh"
    script.write_text(
        lkp.script(
            LkpEngine(src="/opt/lkp-tests", commit="bbbc29c495"), [HACKBENCH], KERNEL, alone=alone
        )
    )
    # our own runner's functions are in it too and not all are called
    argv = [
        str(Path(sys.executable).with_name("shellcheck")),
        "-s",
        "dash",
        "-e",
        "SC2317,SC2034",
        str(script),
    ]
    checked = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout) == (0, "")


# --- a boot


def a_lab(tmp_path: Path, made: LkpEngine) -> Lab:
    lab = played_lab(tmp_path)
    programs = lab.site.jobs / "programs"
    shutil.copytree(SITE.jobs / "programs" / "hackbench", programs / "hackbench")
    path = lab.site.workers / "testboxes" / "played.yaml"
    path.write_text(
        path.read_text().replace(
            '"driver"', f'"engine": "lkp", "lkp": {{"src": "{made.src}"}}, "driver"'
        )
    )
    return lab


def test_an_lkp_that_is_not_installed_on_the_testbox_is_the_lab_s_fault(tmp_path: Path) -> None:
    lab = a_lab(tmp_path, LkpEngine(src="/nowhere/lkp-tests"))
    outcome = lab.boot([codec.plain(HACKBENCH)])
    assert outcome["status"] == "infra"
    assert outcome["reason"] == (
        "The engine lkp of testbox played cannot run: lkp-tests is not at "
        "/nowhere/lkp-tests of the testbox; install it there, or change lkp.src."
    )


def test_a_job_that_lkp_can_t_run_is_reported_before_anything_boots(tmp_path: Path) -> None:
    lab = a_lab(tmp_path, LkpEngine(src="/nowhere/lkp-tests"))
    outcome = lab.boot([{"name": "p", "program": "prints", "params": {}, "runs": 1}])
    assert outcome["status"] == "infra"
    assert outcome["reason"].startswith(
        "p: engine lkp can't run prints: lkp-tests does not have it"
    )
    assert not (lab.out / "console.log").exists()
    outcome = lab.boot([codec.plain(HACKBENCH) | {"monitors": ["perf-profile"]}])
    assert outcome["reason"].startswith(
        "hackbench-a: engine lkp does not support the monitor perf-profile"
    )


def test_a_request_that_lkp_can_t_run_is_refused_when_it_is_made() -> None:
    testboxes = KnownTestboxes(present={"box": testbox("engine: lkp\nlkp: {src: /opt/lkp}\n")})
    specs = SimpleNamespace(add=lambda jobs: jobs[0].name)
    tx = cast(Transaction, SimpleNamespace(specs=specs))
    assert resolve_parts(
        PROGRAMS,
        testboxes,
        tx.specs,
        [JobFile(name="h.yaml", text="hackbench:\n  ipc: pipe\n")],
        ["box"],
        {},
        "trusted",
    ) == [("box", "h-pipe")]
    with pytest.raises(
        RequestError,
        match=(
            "p-1: engine lkp can't run page-fault: lkp-tests does not have it; both have "
            "hackbench, netperf"
        ),
    ):
        resolve_parts(
            PROGRAMS,
            testboxes,
            tx.specs,
            [JobFile(name="p.yaml", text="page-fault:\n  nr_task: 1\n")],
            ["box"],
            {},
            "trusted",
        )


# --- the testbox


def testbox(more: str) -> Testbox:
    return load(TESTBOX + more, "box.yaml")


def test_a_testbox_without_an_engine_has_ours() -> None:
    assert (
        testbox("").engine,
        testbox("engine: swingbot\n").engine,
        testbox("").to_json()["engine"],
    ) == ("swingbot",) * 3


def test_a_testbox_with_the_engine_lkp_says_where_lkp_tests_is() -> None:
    made = testbox("engine: lkp\nlkp: {src: /opt/lkp-tests, commit: 0123456789}\n")
    assert made.lkp == LkpEngine(src="/opt/lkp-tests", commit="0123456789")
    assert made.to_json()["engine"] == "lkp"
    assert boot_seconds(made, [HACKBENCH]) > boot_seconds(testbox(""), [HACKBENCH])


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("engine: lpk\n", "box.yaml:8: engine: 'lpk' is not one of swingbot, lkp"),
        ("engine: lkp\n", "box.yaml:8: engine lkp needs a table lkp with src"),
        (
            "lkp: {src: /opt/lkp}\n",
            "box.yaml:8: lkp says where lkp-tests is, but nothing uses it",
        ),
        (
            "engine: lkp\nlkp: {src: opt/lkp}\n",
            "box.yaml:9: lkp.src: 'opt/lkp' is not an absolute path",
        ),
        (
            "engine: lkp\nlkp: {src: /opt/../etc}\n",
            "box.yaml:9: lkp.src: '/opt/../etc' is not an absolute path",
        ),
        (
            "engine: lkp\nlkp: {src: '/opt/$(id)'}\n",
            "box.yaml:9: lkp.src: '/opt/$(id)' is not an absolute path",
        ),
        (
            "engine: lkp\nlkp: {src: /opt/lkp, commit: master}\n",
            "box.yaml:9: lkp.commit: 'master' is not 7 to 40 hex digits",
        ),
        (
            "engine: lkp\nlkp: {src: /opt/lkp, version: 1}\n",
            "box.yaml:9: lkp: key 'version' is unknown here; known are src",
        ),
    ],
)
def test_a_wrong_engine_is_reported_with_its_line(more: str, said: str) -> None:
    with pytest.raises(TestboxError, match=said.replace("$(", r"\$\(").replace("id)", r"id\)")):
        testbox(more)


# --- the guest of a virtual testbox


def test_what_is_at_the_path_is_looked_at_before_a_guest_is_made(tmp_path: Path) -> None:
    with pytest.raises(InfraError, match="lkp-tests is not at /nowhere: clone it"):
        lkp.check(LkpEngine(src="/nowhere"), {"hackbench"})
    made = stand_in(tmp_path)
    with pytest.raises(InfraError, match="has no programs/netperf/run: versions before March 2026"):
        lkp.check(made, {"hackbench", "netperf"})
    assert lkp.check(made, {"hackbench"}).startswith("sha256:")
    with pytest.raises(InfraError, match="but the testbox requires bbbc29c495"):
        lkp.check(LkpEngine(src=made.src, commit="bbbc29c495"), {"hackbench"})


def test_a_package_brings_what_it_depends_on_and_no_more() -> None:
    known = installed(
        "ruby\t1:3.1\tinstalled\tpre, ruby3.1 | ruby2 (>= 2), libc6:any (>= 2.1)\t\n"
        "ruby3.1\t3.1.2\tinstalled\t, perl\tvirtual-ruby (= 1)\n"
        "libc6\t2.36\tinstalled\t, virtual-ruby\t\n"
        "perl\t5\tinstalled\t, huge\t\n"
        "huge\t1\tinstalled\t,\t\n"
        "removed\t1\tconfig-files\t,\t\n"
    )
    assert known[0]["ruby"] == Package("1:3.1", [["pre"], ["ruby3.1", "ruby2"], ["libc6"]])
    assert closure(["ruby"], known, {"perl"}) == ["libc6", "ruby", "ruby3.1"]
    with pytest.raises(
        InfraError,
        match="The Debian packages removed are not on this worker; run apt-get install removed",
    ):
        closure(["ruby", "removed"], known, set())
