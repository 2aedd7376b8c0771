"""Find the binaries of each benchmark program on this worker.

Binaries in the operator's benchmarks.dir take precedence, then those of
`swingbot-worker program build`, then those of Debian packages. swingbot's own programs are
compiled. A missing program is reported before anything boots.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from swingbot_jobs.contract import memory
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.meta_table import holds
from swingbot_jobs.language.program import Kind, Program, load_program, load_programs
from swingbot_jobs.language.program_files import GuestFile
from swingbot_worker import InfraError, lease, process
from swingbot_worker.answers import Answers
from swingbot_worker.rootfs import debian, installed
from swingbot_worker.site import Site

_DPKG = Path("/var/lib/dpkg/status")  # replaced whenever a package is installed or removed


@dataclass(frozen=True, slots=True)
class Binary:
    """An executable of this host, its path in the guest, and its version."""

    source: Path
    target: str
    version: str


def needed(unit_jobs: Sequence[UnitJob], site: Site) -> list[Binary]:
    """Return the binaries for the programs and monitors of `unit_jobs`, sorted by target.

    Raises InfraError that names the packages to install.
    """
    monitors = {name for job in unit_jobs for name in job.monitors}
    found = [
        binary
        for name in sorted({job.program for job in unit_jobs} | monitors)
        for binary in _provided(
            _program(name, name in monitors, site),
            [job for job in unit_jobs if job.program == name or name in job.monitors],
            site,
        )
    ]
    if any(memory.policy(job.params) == "interleave" for job in unit_jobs):
        found.append(_of_path("numactl", site))
    binaries = {binary.target: binary for binary in found}
    return [binaries[target] for target in sorted(binaries)]


def downloads(name: str, unit_jobs: Sequence[UnitJob], site: Site) -> bool:
    """Return whether the first boot with these jobs downloads a package for the program."""
    program = _program(name, False, site)
    return any(
        _downloadable(group)
        and not _local(program, group, site)
        and not all(debian.is_fetched(wanted.file.download, site.cache) for wanted in group)
        for group in _groups(program, unit_jobs)
    )


def _program(name: str, monitor: bool, site: Site) -> Program:
    meta = site.jobs / "programs" / name / "meta.yaml"
    if not meta.with_name("run").is_file():
        kind: Kind = "monitor" if monitor else "benchmark"
        known = load_programs(site.jobs / "programs").values()
        names = ", ".join(program.name for program in known if program.kind == kind)
        raise InfraError(
            f"The {'monitor' if monitor else 'program'} {name} is unknown on this worker:"
            f" {site.jobs}/programs has only {names}."
        )
    return load_program(meta)


def perf(site: Site) -> Binary:
    """Return Debian's perf, the program itself rather than a wrapper script.

    The same perf counts for all kernels.
    """
    candidates = [Path(which)] if (which := shutil.which("perf")) else []
    candidates += sorted(Path("/usr/bin").glob("perf_[0-9]*"), reverse=True)
    for path in candidates:
        if _is_elf(path):
            return Binary(path, "usr/bin/perf", _package_version("linux-perf", site))
    raise InfraError("perf is not on this worker; install Debian's linux-perf.")


def busybox(site: Site) -> Binary:
    return _of_path("busybox", site)


def _of_path(name: str, site: Site) -> Binary:
    """Return the binary of the package of this name."""
    if (which := shutil.which(name)) is None:
        raise InfraError(f"{name} is not on this worker; install Debian's {name}.")
    return Binary(Path(which), f"usr/bin/{name}", _package_version(name, site))


@dataclass(frozen=True, slots=True)
class _NeededFile:
    """A file with the parameters of a job filled in; `texts` must be in it."""

    name: str
    file: GuestFile
    texts: tuple[str, ...]

    @property
    def target(self) -> str:
        return f"{self.file.directory}/{self.name}"


def _groups(program: Program, unit_jobs: Sequence[UnitJob]) -> list[list[_NeededFile]]:
    """Return the files that the jobs need, those that must come from one build together."""
    defaults = {p.name: p.default for p in program.parameters.values() if p.default}
    wanted = [
        _NeededFile(file.name.format_map(params), file, file.texts(params))
        for job in unit_jobs
        for params in [defaults | dict(job.params)]
        for file in program.files
        if holds(file.when, params)
    ]
    return [wanted] if program.one_build else [[needed_file] for needed_file in wanted]


def _provided(program: Program, unit_jobs: Sequence[UnitJob], site: Site) -> list[Binary]:
    its_own = not program.files or _source(program).is_file()
    return (_of_its_own(program, site) if its_own else []) + [
        binary
        for group in _groups(program, unit_jobs)
        for binary in _local(program, group, site) or _downloaded(program, group, site)
    ]


def _local(program: Program, group: Sequence[_NeededFile], site: Site) -> list[Binary]:
    """Return the group from the first source that has all of it; empty if none has.

    Raises InfraError if benchmarks.dir has only a part of it.
    """
    for source in (_own, _built, _installed):
        found = [source(program.name, wanted, site) for wanted in group]
        here = [binary for binary in found if binary]
        if source is _own and 0 < len(here) < len(group):
            raise InfraError(
                f"benchmarks.dir has {here[0].source.name} but not the other program of"
                f" {program.name}; put {_names(group)} of the same build there."
            )
        if len(here) == len(group) and all(map(_fits, group, here)):
            return here
    return []


def _fits(wanted: _NeededFile, binary: Binary) -> bool:
    return all(text.encode() in binary.source.read_bytes() for text in wanted.texts)


def _names(group: Sequence[_NeededFile]) -> str:
    return " and ".join(dict.fromkeys(wanted.name for wanted in group))


def _downloadable(group: Sequence[_NeededFile]) -> bool:
    return all(wanted.file.download and not wanted.texts for wanted in group)


def _downloaded(program: Program, group: Sequence[_NeededFile], site: Site) -> list[Binary]:
    if not _downloadable(group):
        raise InfraError(_advice(program, group, site))
    return [
        Binary(folder / wanted.target, wanted.target, (folder / "version").read_text())
        for wanted in group
        for folder in [debian.fetched(wanted.file.download, site.cache)]
    ]


def _advice(program: Program, group: Sequence[_NeededFile], site: Site) -> str:
    """Return one sentence on how to get a group that is not on this worker."""
    wanted, built = group[0], installed.find(site.cache, program.name)
    if wanted.file.package:
        return f"{wanted.name} is not on this worker; install Debian's {wanted.file.package}."
    build = f"(`swingbot-worker program build {program.name} ARCHIVE`)"
    texts = [text for wanted in group for text in wanted.texts]
    if texts:
        return (
            f"No {program.name} on this worker has {texts[0]}; build one from a source archive or"
            f" checkout {build}, or put your own {_names(group)} into benchmarks.dir."
        )
    where = f"{site.benchmarks or 'benchmarks.dir'}/{program.name}/{wanted.name}"
    if built:
        return (
            f"There is no {wanted.name} in the {built.version} that was built on this worker: check"
            f" the job, build another source, or put your own binary at {where}."
        )
    upstream = f" from {program.build.upstream} {build}" if program.build else ""
    return (
        f"{wanted.name} of {program.name} is not on this worker, and no package has it: build"
        f" it{upstream}, or put your own binary at {where} (SWINGBOT_BENCHMARKS_DIR)."
    )


def _of_its_own(program: Program, site: Site) -> list[Binary]:
    """Return the program's executable in benchmarks.dir, or compile the C source next to `run`.

    Without either, the list is empty and `run` is the whole program.
    """
    file = GuestFile(name=program.name)
    if own := _own(program.name, _NeededFile(program.name, file, ()), site):
        return [own]
    source = _source(program)
    return [_compiled(program.name, source, site.cache)] if source.is_file() else []


def _source(program: Program) -> Path:
    return program.directory / f"{program.name}.c"


def _own(program: str, wanted: _NeededFile, site: Site) -> Binary | None:
    """Return the operator's file: benchmarks.dir/PROGRAM/NAME, or benchmarks.dir/NAME."""
    folder = site.benchmarks
    paths = (folder / program / wanted.name, folder / wanted.name) if folder else ()
    return next(
        (Binary(path, wanted.target, "benchmarks.dir") for path in paths if _is_executable(path)),
        None,
    )


def _built(program: str, wanted: _NeededFile, site: Site) -> Binary | None:
    """Return the file of `swingbot-worker program build`."""
    built = installed.find(site.cache, program)
    path = built.binary(wanted.name) if built else None
    return Binary(path, wanted.target, built.version) if built and path else None


def _installed(_: str, wanted: _NeededFile, site: Site) -> Binary | None:
    """Return the file of a package that is installed on this host."""
    if not wanted.file.package:
        return None
    paths = [(Path("/", path), path) for path in wanted.file.paths if Path("/", path).is_file()]
    name = wanted.file.installed_as or wanted.name
    if not wanted.file.paths and (which := shutil.which(name)):
        paths = [(Path(which), wanted.target)]
    return next(
        (
            Binary(path, target, _package_version(wanted.file.package, site))
            for path, target in paths
        ),
        None,
    )


def _compiled(program: str, source: Path, cache: Path) -> Binary:
    """Return `source` compiled with this host's gcc, once for each source text and compiler. It may
    include the headers that stand beside the folders of programs.
    """
    gcc = Path(shutil.which("gcc") or "gcc")
    compiler = Answers(cache).of_command([gcc, "--version"], [gcc]).text.partition("\n")[0]
    flags, shared = ("-O2", "-static", "-pthread"), source.parents[1]
    texts = [file.read_text() for file in (source, *sorted(shared.glob("*.h")))]
    key = hashlib.sha256("\0".join((*texts, compiler, *flags)).encode()).hexdigest()
    binary = cache / "compiled" / key / program
    if not binary.exists():
        binary.parent.mkdir(parents=True, exist_ok=True)
        with lease.cache_entry(binary), tempfile.TemporaryDirectory(dir=binary.parent) as work:
            done = process.output(
                ["gcc", *flags, "-I", shared, "-o", Path(work, program), source], timeout=120
            )
            if done.rc != 0:
                first = next(
                    (line for line in done.text.splitlines() if "error" in line), done.text[:200]
                )
                raise InfraError(
                    f"gcc could not compile {source.name} ({first}); install Debian's gcc and "
                    "libc6-dev."
                )
            Path(work, program).rename(binary)
    return Binary(binary, f"usr/bin/{program}", f"compiled by {compiler}")


def _is_executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _is_elf(path: Path) -> bool:
    with path.open("rb") as opened:
        return opened.read(4) == b"\x7fELF"


def _package_version(package: str, site: Site) -> str:
    """Return `package version` from dpkg, or only the name if dpkg does not know the package."""
    answer = Answers(site.cache).of_command(
        ["dpkg-query", "-W", "-f", "${Package} ${Version}", package], [_DPKG]
    )
    return answer.text if answer.rc == 0 else package
