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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_worker import InfraError, lease, process
from swingbot_worker.answers import Answers
from swingbot_worker.rootfs import debian, installed
from swingbot_worker.site import Site

WILL_IT_SCALE_DIR = "usr/share/will-it-scale"
NETPERF = ("netperf", "netserver")
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
    binaries: dict[str, Binary] = {}
    for program in sorted({job.program for job in unit_jobs}):
        if not (site.jobs / "programs" / program / "run").is_file():
            known = sorted(
                path.parent.name
                for path in site.jobs.glob("programs/*/run")
                if not _is_monitor(path.parent)
            )
            raise InfraError(
                f"The program {program} is unknown on this worker: {site.jobs}/programs has only "
                f"{', '.join(known)}."
            )
        provide = _PROVIDERS.get(program, _by_name)
        binaries |= {
            binary.target: binary
            for binary in provide(
                program, [job for job in unit_jobs if job.program == program], site
            )
        }
    for monitor in sorted({name for job in unit_jobs for name in job.monitors}):
        if not (site.jobs / "programs" / monitor / "run").is_file():
            raise InfraError(
                f"The monitor {monitor} is unknown on this worker: {site.jobs}/programs has no "
                f"{monitor}/run."
            )
        if monitor == "vmstat":
            binary = _vmstat(site)
            binaries[binary.target] = binary
    return [binaries[target] for target in sorted(binaries)]


def _is_monitor(program: Path) -> bool:
    meta = program / "meta.yaml"
    return meta.is_file() and "\nkind: monitor\n" in meta.read_text()


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
    if (which := shutil.which("busybox")) is None:
        raise InfraError("busybox is not on this worker; install Debian's busybox.")
    return Binary(Path(which), "usr/bin/busybox", _package_version("busybox", site))


def _by_name(program: str, _: Sequence[UnitJob], site: Site) -> list[Binary]:
    """Return the program's executable in benchmarks.dir, or compile the C source next to `run`.

    Without either, the list is empty and `run` is the whole program.
    """
    if own := _own(site, program):
        return [own]
    source = site.jobs / "programs" / program / f"{program}.c"
    return [_compiled(program, source, site.cache)] if source.is_file() else []


def _hackbench(program: str, _: Sequence[UnitJob], site: Site) -> list[Binary]:
    if own := _own(site, program):
        return [own]
    if (which := shutil.which("hackbench")) is None:
        raise InfraError("hackbench is not on this worker; install Debian's rt-tests.")
    return [Binary(Path(which), "usr/bin/hackbench", _package_version("rt-tests", site))]


def _netperf(_: str, jobs: Sequence[UnitJob], site: Site) -> list[Binary]:
    tests = sorted({job.params.get("test", "") for job in jobs})
    sctp = [test for test in tests if test.startswith("SCTP")]
    for pair in netperf_here(site):
        if all(test.encode() in pair[0].source.read_bytes() for test in sctp):
            return pair
    if sctp:
        raise InfraError(
            f"No netperf on this worker has {sctp[0]} (Debian's is built without SCTP); build one "
            "from a source archive or checkout (`swingbot-worker program build netperf ARCHIVE`), "
            "or put your own netperf and netserver (configured with --enable-sctp) into "
            "benchmarks.dir."
        )
    folder = debian.fetched("netperf", site.cache)
    version = (folder / "version").read_text()
    return [Binary(folder / "usr" / "bin" / name, f"usr/bin/{name}", version) for name in NETPERF]


def netperf_here(site: Site) -> list[list[Binary]]:
    """Return netperf and netserver from benchmarks.dir and from a build on this host, if present.

    Raises InfraError if benchmarks.dir has only one of them.
    """
    own = [binary for name in NETPERF if (binary := _own(site, name))]
    if len(own) == 1:
        raise InfraError(
            f"benchmarks.dir has {own[0].source.name} but not the other program of netperf; put "
            "netperf and netserver of the same build there."
        )
    built = installed.find(site.cache, "netperf")
    local = [_built(built, name, "usr/bin") for name in NETPERF] if built else []
    return [pair for pair in (own, [binary for binary in local if binary]) if len(pair) == 2]


def _will_it_scale(program: str, jobs: Sequence[UnitJob], site: Site) -> list[Binary]:
    binaries = [_stdbuf(site), _libstdbuf(site)]
    built = installed.find(site.cache, program)
    for job in jobs:
        mode = "threads" if job.params.get("mode") == "thread" else "processes"
        name = f"{job.params.get('test', '')}_{mode}"
        path = site.benchmarks / program / name if site.benchmarks else None
        if path and _is_executable(path):
            binaries.append(Binary(path, f"{WILL_IT_SCALE_DIR}/{name}", "benchmarks.dir"))
        elif built and (binary := _built(built, name, WILL_IT_SCALE_DIR)):
            binaries.append(binary)
        else:
            raise InfraError(_no_will_it_scale(name, built, path))
    return binaries


def _no_will_it_scale(name: str, built: installed.Installed | None, own: Path | None) -> str:
    where = own or f"benchmarks.dir/will-it-scale/{name} (SWINGBOT_BENCHMARKS_DIR)"
    if built:
        return (
            f"There is no {name} in the {built.version} that was built on this worker: check the "
            f"name of the test, build another source, or put your own binary at {where}."
        )
    return (
        f"{name} of will-it-scale is not on this worker, and no package has it: build it from a "
        "source archive or checkout (https://github.com/antonblanchard/will-it-scale) with "
        "`swingbot-worker program build will-it-scale ARCHIVE`, "
        f"or put your own binary at {where}."
    )


# Programs with a function of their own; others are looked up by name.
_PROVIDERS: Mapping[str, Callable[[str, Sequence[UnitJob], Site], Iterable[Binary]]] = {
    "hackbench": _hackbench,
    "netperf": _netperf,
    "will-it-scale": _will_it_scale,
}


def _stdbuf(site: Site) -> Binary:
    if (which := shutil.which("stdbuf")) is None:
        raise InfraError("stdbuf is not on this worker; install Debian's coreutils.")
    return Binary(Path(which), "usr/bin/stdbuf", _package_version("coreutils", site))


def _libstdbuf(site: Site) -> Binary:
    for folder in ("usr/libexec/coreutils", "usr/lib/coreutils"):
        if (path := Path("/", folder, "libstdbuf.so")).is_file():
            return Binary(path, f"{folder}/libstdbuf.so", _package_version("coreutils", site))
    raise InfraError("libstdbuf.so is not on this worker; install Debian's coreutils.")


def _vmstat(site: Site) -> Binary:
    if (which := shutil.which("vmstat")) is None:
        raise InfraError("vmstat is not on this worker; install Debian's procps.")
    return Binary(Path(which), "usr/bin/vmstat", _package_version("procps", site))


def _own(site: Site, name: str) -> Binary | None:
    path = site.benchmarks / name if site.benchmarks else None
    return (
        Binary(path, f"usr/bin/{name}", "benchmarks.dir") if path and _is_executable(path) else None
    )


def _built(built: installed.Installed, name: str, directory: str) -> Binary | None:
    path = built.binary(name)
    return Binary(path, f"{directory}/{name}", built.version) if path else None


def _compiled(program: str, source: Path, cache: Path) -> Binary:
    """Return `source` compiled with this host's gcc, once for each source text and compiler."""
    gcc = Path(shutil.which("gcc") or "gcc")
    compiler = Answers(cache).of_command([gcc, "--version"], [gcc]).text.partition("\n")[0]
    flags = ("-O2", "-static", "-pthread")
    key = hashlib.sha256("\0".join((source.read_text(), compiler, *flags)).encode()).hexdigest()
    binary = cache / "compiled" / key / program
    if not binary.exists():
        binary.parent.mkdir(parents=True, exist_ok=True)
        with lease.cache_entry(binary), tempfile.TemporaryDirectory(dir=binary.parent) as work:
            done = process.output(["gcc", *flags, "-o", Path(work, program), source], timeout=120)
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
