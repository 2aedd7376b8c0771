"""The engine lkp: real runs of `lkp run`, and how swingbot reads them.

They run on this machine's kernel, in the root file system that a virtual testbox would get, below
chroot and in namespaces of their own, so that LKP's fixed paths, its killall and its sysctls affect
nothing outside. LKP's statistics must be what our own parser reads out of the same raw output, and
a run that fails must come back as a failed one, though `lkp run` ends with 0.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import load_programs
from swingbot_jobs.reading import lkp
from swingbot_jobs.reading.parse import parse_results, parse_run, read_results
from swingbot_jobs.reading.result import ParsedRun, ParseError
from swingbot_jobs.testbox.file import load
from swingbot_worker import InfraError, engine
from swingbot_worker.site import from_environment
from tests.conformance.row import Row
from tests.conformance.ruby import missing
from tests.demo.process import attempt

KERNEL: Final = {
    "commit": "0123456789abcdef0123456789abcdef01234567",
    "kconfig": "vm-x86_64",
    "compiler": "gcc-12",
}
TESTBOX: Final = """name: conformance
tbox_group: conformance
driver: qemu
engine: lkp
lkp: {{src: {src}}}
model: a chroot
nr_cpu: 2
memory_mb: 2048
qemu: {{accel: tcg}}
"""
_SMALL: Final = {
    "nr_threads": "1",
    "mode": "process",
    "ipc": "pipe",
    "fds": "4",
    "loops": "200",
    "datasize": "100",
}
JOBS: Final = (
    UnitJob(
        name="hackbench-pipe", program="hackbench", runs=2, params=_SMALL | {"iterations": "3"}
    ),
    UnitJob(
        name="hackbench-threads",
        program="hackbench",
        runs=1,
        params=_SMALL | {"mode": "threads", "ipc": "socket", "iterations": "2"},
    ),
    UnitJob(
        name="netperf-rr",
        program="netperf",
        runs=1,
        params={"test": "TCP_RR", "nr_threads": "2", "runtime": "2", "ip": "ipv4"},
    ),
    # hackbench refuses it and ends with 1
    UnitJob(
        name="hackbench-refused",
        program="hackbench",
        runs=1,
        params=_SMALL | {"datasize": "0", "iterations": "1"},
    ),
)
FAILS: Final = "hackbench-refused"


def check(lkp_src: Path) -> list[Row]:
    """One row, or the reason why it is missing."""
    what = "engine lkp"
    if os.geteuid() != 0:
        return [Row(what=what, compared=0, note="LKP has to be root")]
    if lacking := missing():
        return [Row(what=what, compared=0, note=f"LKP cannot run: {lacking}")]
    try:
        with tempfile.TemporaryDirectory(prefix="conformance-engine-") as place:
            return [_row(what, run(lkp_src, list(JOBS), Path(place)))]
    except InfraError as error:
        return [Row(what=what, compared=0, note=f"not run: {error}")]


def run(lkp_src: Path, jobs: list[UnitJob], place: Path) -> Path:
    """Run `jobs` through LKP and return the path of results.tar.

    `place` is an empty directory for the root file system. Raises InfraError.
    """
    site, testbox = from_environment(), load(TESTBOX.format(src=lkp_src), "conformance.yaml")
    root, results = place / "root", place / "results.tar"
    root.mkdir()
    made = engine.prepare(testbox, jobs, site)
    _run(["sh", "-c", f"cd '{root}' && busybox cpio -idm <'{made.archive}' 2>/dev/null"])
    for entry in engine.job_entries(testbox, jobs, site, KERNEL, alone=False):
        path = root / entry.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(entry.content)
    _run(
        [
            "unshare",
            "--mount",
            "--pid",
            "--fork",
            "--uts",
            "--ipc",
            "sh",
            "-ec",
            _inside(root, results),
        ]
    )
    return results


def _inside(root: Path, results: Path) -> str:
    """Shell script that runs the job below `root` with the file systems that it needs.

    The settings of the host are mounted read-only.
    """
    return f"""mount --make-rprivate /
hostname conformance
mount -t proc proc '{root}/proc'
mount -t proc proc '{root}/mnt'
mount -o bind,ro '{root}/mnt/sys' '{root}/proc/sys'
mount --rbind /dev '{root}/dev'
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot '{root}' sh /job/run.sh 3>'{results}'
"""


def _run(argv: list[str]) -> None:
    status, said, wrong = attempt(argv)
    if status != 0:
        raise InfraError(f"{argv[0]} ended with {status}: {(wrong or said).strip()[-500:]}")


def _row(what: str, results: Path) -> Row:
    programs = load_programs(from_environment().jobs / "programs")
    found = read_results(results)
    runs = parse_results(results, JOBS, programs)
    if problem := found.facts.get(engine.PROBLEM):
        return Row(what=what, compared=0, differences=(problem.strip(),))
    compared, differences = 0, []
    for one in runs:
        job = next(job for job in JOBS if job.name == one.unit_job)
        if one.unit_job == FAILS:
            differences += (
                []
                if one.status == "failed" and not one.samples
                else [f"{FAILS}: a run that failed is {one.status}"]
            )
            continue
        files = {
            name: text
            for name, text in found.runs.get((one.unit_job, one.number), {}).items()
            if name != lkp.MARKER
        }
        try:
            ours = parse_run(job.program, files, job.params, programs)
        except ParseError as error:
            ours = {}
            differences.append(f"{one.unit_job}: {error}")
        compared += 1
        differences += _differing(one, ours)
    return Row(
        what=what,
        compared=compared,
        differences=tuple(differences),
        note="real runs: LKP's stats.json and our reading of the same output",
    )


def _differing(one: ParsedRun, ours: dict[str, list[float]]) -> Iterator[str]:
    if one.status != "ok" or one.reason:
        yield f"{one.unit_job} run {one.number}: {one.status}: {one.reason}"
    elif one.samples != ours:
        yield f"{one.unit_job} run {one.number}: LKP {one.samples}, swingbot {ours}"
