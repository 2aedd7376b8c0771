"""The engine `lkp`: each run is one `lkp run` of the lkp-tests named in the testbox file.

The operator's own machine has lkp-tests installed, with LKP's benchmarks under /lkp/benchmarks. A
virtual testbox gets a root file system with this host's Ruby, a copy of lkp-tests, and swingbot's
benchmark binaries where LKP looks for them.
"""

from __future__ import annotations

import contextlib
import hashlib
import shlex
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from swingbot_jobs.borrowed_repository import NotARepository, borrowed
from swingbot_jobs.contract.deadline import run_limit
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import Program, load_programs
from swingbot_jobs.reading.lkp import NoLkpEquivalent, job_file
from swingbot_jobs.testbox.boot_time import LKP_VIRTUAL_SECONDS
from swingbot_jobs.testbox.definition import LkpEngine, Testbox
from swingbot_worker import InfraError, lease, process, rootfs, runner
from swingbot_worker.engine.lkp_script import LKP
from swingbot_worker.rootfs import Rootfs, cpio, libraries, packages, programs
from swingbot_worker.site import Site

# The programs that LKP's scripts call, and the Ruby libraries that `lkp run` loads.
_PACKAGES: Final = (
    *(
        "base-files",
        "bash",
        "coreutils",
        "dash",
        "findutils",
        "grep",
        "gzip",
        "hostname",
        "mawk",
        "procps",
        "psmisc",
        "sed",
        "tar",
        "time",
        "util-linux",
    ),
    *("ruby", "ruby-activesupport", "ruby-git", "ruby-tty-command"),
)
# Large dependencies that are never called.
_WITHOUT: Final = frozenset(
    {
        "adduser",
        "debconf",
        "dpkg",
        "git",
        "install-info",
        "libjs-jquery",
        "passwd",
        "perl",
        "perl-base",
        "rake",
    }
)
# Parts of lkp-tests that a run does not read.
_UNREAD: Final = frozenset(
    {
        ".git",
        ".github",
        "cluster",
        "distro",
        "doc",
        "docker",
        "hosts",
        "jobs",
        "kbuild",
        "repo",
        "rootfs",
        "spec",
    }
)


def prepare(
    testbox: Testbox, engine: LkpEngine, unit_jobs: Sequence[UnitJob], site: Site
) -> Rootfs:
    """Build the guest of a virtual testbox.

    Raises InfraError that names the packages to install.
    """
    source = Path(engine.src)
    commit = check(engine, {job.program for job in unit_jobs})
    known = load_programs(site.jobs / "programs")
    if reasons := [why for job in unit_jobs if (why := known[job.program].lkp_needs)]:
        raise InfraError(f"{reasons[0]}; use the engine swingbot there.")
    tree = libraries.GuestTree(site.cache)
    files, versions = packages.entries(_PACKAGES, _WITHOUT)
    base, binaries = [programs.busybox(site), programs.perf(site)], programs.needed(unit_jobs, site)
    for entry in (
        *libraries.layout(),
        *rootfs.recipe(site),
        *_lkp_files(source),
        *_machine(testbox, source),
        _wakeup(source, site.cache),
    ):
        tree.add(entry)
    for binary in base:
        tree.add_program(binary.source, binary.target)
    for binary in binaries:
        tree.add_program(
            binary.source,
            f"lkp/benchmarks/{_program_of(binary.target, known)}/bin/{Path(binary.target).name}",
        )
    # a library that came with a program is a file, where the package has a symbolic link to it
    for entry in files:
        tree.entries.setdefault(entry.path, entry)
    facts = {
        f"version.{name}": version for name, version in versions.items() if name.startswith("ruby")
    } | {"version.lkp-tests": commit}
    return rootfs.finished(tree, [*base, *binaries], facts, site)


def check(engine: LkpEngine, names: set[str]) -> str:
    """Return the commit of `engine.src`, or its digest if it is not a git repository.

    Raises InfraError if it is missing or has an unsupported layout.
    """
    source = Path(engine.src)
    if not (source / "bin" / "lkp").is_file():
        raise InfraError(
            f"lkp-tests is not at {source}: clone it (git clone "
            "https://github.com/intel/lkp-tests), or change lkp.src of the testbox."
        )
    lacking = sorted(name for name in names if not (source / "programs" / name / "run").is_file())
    if lacking:
        raise InfraError(
            f"The lkp-tests at {source} has no programs/{lacking[0]}/run: versions before March "
            "2026 have a different layout; use a newer one."
        )
    commit = _commit(source)
    if engine.commit and not commit.startswith(engine.commit):
        raise InfraError(
            f"The lkp-tests at {source} is {commit}, but the testbox requires {engine.commit}: "
            "check that commit out, or change lkp.commit."
        )
    return commit


def _commit(source: Path) -> str:
    if (source / ".git").exists():
        with contextlib.suppress(NotARepository), borrowed(source) as git_dir:
            answer = process.output(
                ["git", f"--git-dir={git_dir}", "rev-parse", "HEAD"], timeout=60
            )
            if answer.rc == 0:
                return answer.text.strip()
    digest = hashlib.sha256()
    for entry in _lkp_files(source):
        digest.update(
            f"{entry.path}\0{entry.mode}\0{len(entry.content)}\0".encode() + entry.content
        )
    return f"sha256:{digest.hexdigest()[:40]}"


def job_entries(
    engine: LkpEngine,
    unit_jobs: Sequence[UnitJob],
    site: Site,
    kernel: Mapping[str, object],
    *,
    alone: bool,
) -> list[cpio.Entry]:
    """Return run.sh and a job file for each unit job.

    Raises InfraError for a program that lkp-tests does not have.
    """
    try:
        known = load_programs(site.jobs / "programs")
        files = [
            cpio.file(f"job/lkp/{job.name}.yaml", job_file(job, known).encode())
            for job in unit_jobs
        ]
    except NoLkpEquivalent as error:
        raise InfraError(f"{error}; use another testbox.") from error
    return [
        cpio.file(
            "job/run.sh", script(engine, unit_jobs, kernel, alone=alone).encode(), executable=True
        ),
        *files,
    ]


def script(
    engine: LkpEngine, unit_jobs: Sequence[UnitJob], kernel: Mapping[str, object], *, alone: bool
) -> str:
    """Return the text of /job/run.sh."""
    settings = {
        "commit": kernel.get("commit"),
        "kconfig": kernel.get("kconfig"),
        "compiler": kernel.get("compiler"),
    }
    options = "".join(
        f" -s {shlex.quote(f'{name}: {value}')}" for name, value in settings.items() if value
    )
    text = (
        LKP.replace("@SRC@", shlex.quote(engine.src.rstrip("/")))
        .replace("@COMMIT@", engine.commit)
        .replace("@SETTINGS@", options)
    )
    runs = "\n".join(line for job in unit_jobs for line in runner.lines(job, _run_of(job)))
    checks = "\n".join(f"check_lkp {name}" for name in sorted({job.program for job in unit_jobs}))
    return runner.framed(unit_jobs, text, f"{checks}\nlkp_ready && {{\n{runs}\n}}", alone=alone)


def _run_of(job: UnitJob) -> Callable[[int], str]:
    # far above the usual value, because a busy host slows a virtual machine down
    limit = run_limit(job) + int(5 * LKP_VIRTUAL_SECONDS)
    return lambda number: " ".join(
        ("lkp_run", shlex.quote(job.name), str(number), str(limit), job.program)
    )


# --- the guest of a virtual testbox ---------------------------------------------------------------


def _program_of(target: str, known: Mapping[str, Program]) -> str:
    """Return the LKP benchmark directory of a binary: its program's, if it is a daemon of one."""
    name = Path(target).name
    return next((one.name for one in known.values() if name in one.daemons), name)


def _lkp_files(source: Path) -> list[cpio.Entry]:
    """Return the files of this host's lkp-tests, at the same path in the guest."""
    entries = []
    for path in sorted(source.rglob("*")):
        parts = path.relative_to(source).parts
        if (
            parts[0] in _UNREAD
            or (len(parts) > 2 and parts[0] == "programs" and parts[2] == "pkg")
            or path.name == "wakeup"
        ):
            continue
        place = str(path).lstrip("/")
        if path.is_symlink():
            entries.append(cpio.link(place, str(path.readlink())))
        elif path.is_file():
            entries.append(
                cpio.file(place, path.read_bytes(), executable=bool(path.stat().st_mode & 0o111))
            )
    return entries


def _machine(testbox: Testbox, source: Path) -> list[cpio.Entry]:
    """Return the host files that `lkp install` would have written for the machine."""
    host = f"nr_cpu: {testbox.nr_cpu}\nmemory: {max(1, testbox.memory_mb >> 10)}G\nlocal_run: 1\n"
    return [
        cpio.file(str(source / "hosts" / testbox.name).lstrip("/"), host.encode()),
        cpio.file("etc/hostname", f"{testbox.name}\n".encode()),
        cpio.directory("lkp/paths"),
        # LKP queries the compiler's name, and exits if there is no compiler
        cpio.file("usr/bin/gcc", b"#!/bin/sh\nexit 1\n", executable=True),
    ]


def _wakeup(source: Path, cache: Path) -> cpio.Entry:
    """Return LKP's event helper, compiled by this host's gcc once for each source version."""
    text = source / "bin" / "event" / "wakeup.c"
    if not text.is_file():
        raise InfraError(f"The lkp-tests at {source} has no bin/event/wakeup.c; clone it again.")
    binary = cache / "compiled" / hashlib.sha256(text.read_bytes()).hexdigest() / "wakeup"
    binary.parent.mkdir(parents=True, exist_ok=True)
    if not binary.exists():
        with lease.cache_entry(binary), tempfile.TemporaryDirectory(dir=binary.parent) as work:
            done = process.output(
                ["gcc", "-O2", "-static", "-o", Path(work, "wakeup"), text], timeout=120
            )
            if done.rc != 0:
                raise InfraError(
                    f"gcc could not compile LKP's wakeup.c ({done.text[:200]}); install Debian's "
                    "gcc and libc6-dev."
                )
            Path(work, "wakeup").rename(binary)
    return cpio.file(
        str(source / "bin" / "event" / "wakeup").lstrip("/"), binary.read_bytes(), executable=True
    )
