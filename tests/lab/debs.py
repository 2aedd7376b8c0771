"""Debian packages in a folder that apt takes as a source: what a server of the tests can install
without a network; and programs and kernel sources of packages that this host does not install.
"""

from __future__ import annotations

import functools
import hashlib
import json
import lzma
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from swingbot_worker import lease
from swingbot_worker.rootfs.debian import system_sources
from swingbot_worker.site import from_environment

SUITE = "bookworm"
# Where Debian offers its newest kernels to a stable release: the next one's backports.
NEWEST_KERNELS = "trixie-backports"
# Packages with programs that tests run. Installed, they would start services on a developer's host.
UNINSTALLED = ("openssh-server", "openipmi", "ipmitool")


def sources_list() -> str:
    """This host's own sources of Debian 12, one a line."""
    mine = [
        one
        for one in system_sources()
        if one.suite in (SUITE, f"{SUITE}-updates", f"{SUITE}-security")
    ]
    return "".join(
        (
            f"deb {f'[{one.options}] ' if one.options else ''}{one.uri} {one.suite}"
            f" {' '.join(one.components)}\n"
        )
        for one in mine
    )


def kernel_source(release: str) -> Path:
    """Debian's source of a kernel: of "6.1" this host's package linux-source-6.1, of "7" the newest
    7.x of `NEWEST_KERNELS`, fetched once.
    """
    if "." in release:
        return Path(f"/usr/src/linux-source-{release}.tar.xz")
    sources = sources_list().replace(f" {SUITE} ", f" {NEWEST_KERNELS} ").splitlines()
    folder = _unpacked_package(f"linux-source-{release}", sources[0])
    (tarball,) = (folder / "usr/src").glob("linux-source-*.tar.xz")
    return tarball


def kernel_config(release: str, flavour: str) -> str:
    """The configuration of Debian's kernel package of amd64: release "6.1", flavour
    "cloud-amd64". Fetched once.
    """
    package = f"linux-config-{release}"
    folder = _unpacked_package(package, sources_list()) / "usr/src" / package
    return lzma.decompress((folder / f"config.amd64_none_{flavour}.xz").read_bytes()).decode()


def _unpacked_package(package: str, sources: str) -> Path:
    """The files of `package`, or of the newest whose name continues it with ".N"."""
    folder = from_environment().cache / "debs" / package
    with lease.cache_entry(folder, patience=1800.0):
        if not folder.exists():
            part = folder.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            apt = _apt(part / "state", sources, Path("/dev/null"))
            _run(["apt-get", *apt, "update"])
            found = _run(["apt-cache", *apt, "pkgnames", package]).split()
            fitting = [name for name in found if re.fullmatch(rf"{package}(\.\d+)?", name)]
            if not fitting:
                raise RuntimeError(f"apt knows no package {package}")
            newest = max(fitting, key=lambda name: [int(one) for one in re.findall(r"\d+", name)])
            _run(["apt-get", *apt, "download", newest], cwd=part)
            (deb,) = part.glob("*.deb")
            _run(["dpkg-deb", "--extract", str(deb), str(part)])
            deb.unlink()
            shutil.rmtree(part / "state")
            part.rename(folder)
    return folder


def debs(packages: Sequence[str], root: Path) -> Path:
    """A folder with `packages`, and with all that they need beyond what `root` has.

    `Packages` in it is its index. Made once a set.
    """
    status = root / "var/lib/dpkg/status"
    key = hashlib.sha256(json.dumps([sorted(packages), status.read_text()]).encode()).hexdigest()[
        :16
    ]
    folder = from_environment().cache / "debs" / key
    with lease.cache_entry(folder, patience=1800.0):
        if not (folder / "Packages").exists():
            shutil.rmtree(folder, ignore_errors=True)
            _fetch(packages, status, folder)
            (folder / "Packages.part").write_text(
                "\n".join(_entry(deb) for deb in sorted(folder.glob("*.deb")))
            )
            (folder / "Packages.part").rename(folder / "Packages")
    return folder


def debian_program(name: str) -> list[str]:
    """The words that run a program of `UNINSTALLED`: this host's, or one unpacked in the cache.

    Skips the test if this host has none and apt downloads none.
    """
    if here := shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/usr/bin"):
        return [here]
    root, why = _unpacked()
    if why:
        pytest.skip(f"needs {name}: {why}")
    [path] = root.glob(f"usr/*bin/{name}")
    libraries = [*root.glob("lib/*-linux-gnu"), *root.glob("usr/lib/*-linux-gnu")]
    return ["env", f"LD_LIBRARY_PATH={':'.join(map(str, libraries))}", str(path)]


@functools.cache
def _unpacked() -> tuple[Path, str]:
    """`UNINSTALLED` with all that they need beyond what this host has, and why they are not there.

    Once a process: without a network not every test waits for apt.
    """
    try:
        folder = debs(UNINSTALLED, Path("/"))
    except (OSError, RuntimeError) as error:
        return Path(), str(error)
    root, part = folder / "root", folder / "root.part"
    with lease.cache_entry(root):
        if not root.exists():
            shutil.rmtree(part, ignore_errors=True)
            for deb in sorted(folder.glob("*.deb")):
                subprocess.run(["dpkg-deb", "--extract", str(deb), str(part)], check=True)
            part.rename(root)
    return root, ""


def _fetch(packages: Sequence[str], status: Path, folder: Path) -> None:
    """apt-get with a state of its own: nothing of this host's apt changes."""
    state = folder / "state"
    apt = ["apt-get", *_apt(state, sources_list(), status)]
    _run([*apt, "update"])
    _run([*apt, "--yes", "--download-only", "--reinstall", "install", *packages])
    for deb in (state / "archives").glob("*.deb"):
        deb.rename(folder / deb.name.replace("%3a", ":"))
    shutil.rmtree(state)


def _apt(state: Path, sources: str, status: Path) -> list[str]:
    """Options of apt for a new state of its own in `state`, with a sources.list."""
    for name in ("lists/partial", "archives/partial"):
        (state / name).mkdir(parents=True)
    (state / "sources.list").write_text(sources)
    settings = {
        "Dir::State": state,
        "Dir::Cache": state,
        "Dir::Cache::archives": state / "archives",
        "Dir::Etc::SourceList": state / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State::status": status,
        "APT::Sandbox::User": "root",
        "APT::Install-Recommends": "false",
        "Debug::NoLocking": "true",
    }
    return ["-qq", *(word for key, value in settings.items() for word in ("-o", f"{key}={value}"))]


def _run(argv: Sequence[str], cwd: Path | None = None) -> str:
    """What it prints. Raises RuntimeError if it fails."""
    done = subprocess.run(
        argv,
        cwd=cwd,
        capture_output=True,
        text=True,
        errors="replace",
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
    )
    if done.returncode != 0:
        raise RuntimeError(f"{argv[0]}: {(done.stdout + done.stderr)[-1500:]}")
    return done.stdout


def _entry(deb: Path) -> str:
    """A package in the index: its control file, and its path (Debian policy,
    and apt's own format of `Packages`).
    """
    control = subprocess.run(
        ["dpkg-deb", "--field", str(deb)], capture_output=True, text=True, check=True
    ).stdout
    data = deb.read_bytes()
    return (
        f"{control.rstrip()}\nFilename: ./{deb.name}\nSize: {len(data)}\nSHA256:"
        f" {hashlib.sha256(data).hexdigest()}\n"
    )
