"""Job splitting: compare the names from `lkp split-job`, and their order, with swingbot's.

Compares lkp-tests' own files for the programs that both have, and our own files for the corner
cases of the language (`cases.py`). LKP needs a host file in its directory, so it runs in a
directory of symbolic links that also has that file.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from swingbot_jobs.language.expand import expand, expand_documents
from swingbot_jobs.language.job import JobError
from swingbot_jobs.language.job import read_job as documents_of
from swingbot_jobs.language.job_files import read_job
from swingbot_jobs.language.program import load_programs
from swingbot_jobs.language.values import NominalTestbox
from tests.conformance.cases import cases
from tests.conformance.row import Row
from tests.conformance.ruby import missing
from tests.demo.process import attempt

JOBS: Final = Path(__file__).resolve().parents[2] / "jobs"
FILES: Final = ("will-it-scale*.yaml", "netperf*.yaml", "hackbench*.yaml")
TESTBOX: Final = NominalTestbox("box", "box", 8, 16 * 1024)
CPUS: Final = (1, 2, 7, 104)
VALUES: Final = (
    ("hackbench", "nr_threads", ("50%", "1600%", "12.5%", "33.3%", "3t", "7")),
    ("will-it-scale", "nr_task", ("25%", "100%", "16")),
    ("netperf", "runtime", ("300s", "300", "5m", "2h", "1d", "1w", "1y")),
    ("hackbench", "iterations", ("8", "100x")),
    ("page-fault", "size", ("4096", "64K", "128M", "2G", "1T", "4g", "64KB")),
)
# Reads "CPUS KEY VALUE" lines and prints each value as LKP passes it to a program.
RESOLVE: Final = """
require "#{ENV['LKP_SRC']}/lib/job"
require "#{ENV['LKP_SRC']}/lib/unit"
STDIN.each_line do |line|
  cpus, key, value = line.split
  job = Job.new('nr_cpu' => cpus.to_i, key => value)
  job.expand_params(run_scripts: false)
  puts job.instance_variable_get(:@jobx)[key]
end
"""
# Parts of the error for a key that needs a feature of LKP that swingbot lacks.
REFUSALS: Final = ("needs LKP's", "would have no effect here")


def check(lkp_src: Path) -> list[Row]:
    """A row for each job file of lkp-tests, and one for all our own cases."""
    if lacking := missing():
        return [Row(what="jobs", compared=0, note=f"split-job cannot run: {lacking}")]
    with tempfile.TemporaryDirectory(prefix="conformance-") as directory:
        lkp = _with_host(lkp_src, Path(directory) / "lkp")
        return [*_own_files(lkp, Path(directory)), _cases(lkp, Path(directory)), _values(lkp)]


def _own_files(lkp: Path, directory: Path) -> Iterator[Row]:
    lkp_jobs = (lkp / "jobs").resolve()
    found = split(
        lkp, sorted({path for pattern in FILES for path in lkp_jobs.rglob(pattern)}), directory
    )
    for path, names in found.items():
        what = f"jobs/{path.relative_to(lkp_jobs)}"
        theirs, idle = _without_idle(names, directory / "out")
        try:
            ours = _ours(path)
        except JobError as error:
            named = all(
                any(refusal in str(problem) for refusal in REFUSALS) for problem in _problems(path)
            )
            yield (
                Row(what=what, compared=0, note=f"named: {error}")
                if named
                else Row(what=what, compared=len(theirs), differences=(str(error),))
            )
            continue
        note = f"LKP has {' and '.join(idle)} too, which runs nothing" if idle else ""
        yield Row(
            what=what, compared=len(theirs), differences=tuple(differences(theirs, ours)), note=note
        )


def _without_idle(names: list[str], out: Path) -> tuple[list[str], list[str]]:
    """Names of jobs that run a benchmark, and names of those that do not.

    LKP makes a job of a base file that only provides keys; swingbot does not.
    """
    benchmarks = "|".join(
        name
        for name, program in load_programs(JOBS / "programs").items()
        if program.kind == "benchmark"
    )
    idle = [
        name
        for name in names
        if not re.search(rf"^ *(?:{benchmarks}):", (out / f"{name}.yaml").read_text(), re.MULTILINE)
    ]
    return [name for name in names if name not in idle], idle


def _cases(lkp: Path, directory: Path) -> Row:
    place = directory / "cases"
    place.mkdir()
    written = {name: place / f"{name}.yaml" for name in cases()}
    for name, text in cases().items():
        written[name].write_text(text)
    asked = [path for name, path in written.items() if not name.startswith("included")]
    theirs = split(lkp, asked, directory)
    found = [
        f"{path.stem}: {difference}"
        for path in asked
        for difference in differences(theirs[path], _names(path))
    ]
    return Row(
        what="our own cases",
        compared=sum(len(set(names)) for names in theirs.values()),
        differences=tuple(found),
    )


def _values(lkp: Path) -> Row:
    """Percentages, durations, sizes and counts as LKP's `params/` resolve them."""
    asked = [
        (cpus, program, key, value)
        for cpus in CPUS
        for program, key, values in VALUES
        for value in values
    ]
    argv = ["env", f"LKP_SRC={lkp}", "ruby", "-e", RESOLVE]
    status, said, wrong = attempt(
        argv, stdin="".join(f"{cpus} {key} {value}\n" for cpus, _, key, value in asked).encode()
    )
    theirs = said.split("\n")[:-1]
    if status != 0 or len(theirs) != len(asked):
        raise RuntimeError(
            f"LKP resolved {len(theirs)} of {len(asked)} values: {wrong.strip()[-3500:]}"
        )
    found = [
        f"{key}: {value} on {cpus} CPUs: LKP has {other}, swingbot {mine}"
        for (cpus, program, key, value), other in zip(asked, theirs, strict=True)
        if (mine := _resolved(cpus, program, key, value)) != other
    ]
    return Row(what="resolved values", compared=len(asked), differences=tuple(found))


def _resolved(cpus: int, program: str, key: str, value: str) -> str:
    """swingbot's value, or 0 if swingbot reports an error because nothing would run."""
    needed = (
        "  test: TCP_RR\n"
        if program == "netperf"
        else "  test: brk1\n"
        if program == "will-it-scale"
        else ""
    )
    try:
        [job] = expand(
            f"{program}:\n  {key}: '{value}'\n{needed}",
            "j.yaml",
            NominalTestbox("box", "box", cpus),
            load_programs(JOBS / "programs"),
        )
    except JobError as error:
        return "0" if "is less than 1" in str(error) else str(error)
    return job.params[key]


def split(lkp: Path, files: Iterable[Path], directory: Path) -> dict[Path, list[str]]:
    """The names that split-job gives each file, in its order."""
    out = directory / "out"
    out.mkdir(exist_ok=True)
    found: dict[Path, list[str]] = {path: [] for path in files}
    argv: list[str | Path] = [
        "env",
        f"LKP_SRC={lkp}",
        "ruby",
        lkp / "sbin" / "split-job",
        "-t",
        TESTBOX.name,
        "-o",
        out,
        *found,
    ]
    status, said, wrong = attempt(argv)
    for line in said.splitlines():
        source, arrow, target = line.partition(" => ")
        if arrow and Path(source) in found:
            found[Path(source)].append(Path(target).name.removesuffix(".yaml"))
    if status != 0 or not all(found.values()):
        empty = next((path for path, names in found.items() if not names), None)
        raise RuntimeError(
            f"split-job ended with {status} and gave {empty} no names: "
            f"{(wrong or said).strip()[-3500:]}"
        )
    return found


def differences(theirs: list[str], ours: list[str]) -> Iterator[str]:
    """Names on only one side, or the first position at which the order differs."""
    yield from (f"only LKP: {name}" for name in theirs if name not in ours)
    yield from (f"only swingbot: {name}" for name in ours if name not in theirs)
    if sorted(set(theirs)) == sorted(set(ours)):
        yield from (
            f"LKP has {a} where swingbot has {b}"
            for a, b in list(zip(dict.fromkeys(theirs), dict.fromkeys(ours), strict=True))
            if a != b
        )


def _names(path: Path) -> list[str]:
    try:
        return _ours(path)
    except JobError as error:
        return [str(error)]


def _ours(path: Path) -> list[str]:
    programs = load_programs(JOBS / "programs")
    documents, problems = documents_of(read_job(path), path.name, programs)
    if problems:
        raise problems[0]
    return [job.name for job in expand_documents(documents, TESTBOX, programs)]


def _problems(path: Path) -> list[JobError]:
    return documents_of(read_job(path), path.name, load_programs(JOBS / "programs"))[1]


def _with_host(lkp_src: Path, place: Path) -> Path:
    """A copy of lkp-tests by symbolic links, except `hosts/`, which has the conformance testbox."""
    place.mkdir()
    for entry in lkp_src.iterdir():
        if entry.name != "hosts":
            (place / entry.name).symlink_to(entry)
    (place / "hosts").mkdir()
    facts: Mapping[str, object] = {
        "nr_cpu": TESTBOX.nr_cpu,
        "memory": f"{TESTBOX.memory_mb // 1024}G",
        "local_run": 1,
    }
    (place / "hosts" / TESTBOX.name).write_text(
        "".join(f"{key}: {value}\n" for key, value in facts.items())
    )
    return place
