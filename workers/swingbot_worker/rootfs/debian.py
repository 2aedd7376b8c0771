"""Download Debian packages that are not in the system's apt sources, such as non-free netperf.

This uses a private apt state; the system's apt does not change. The mirror is that of the system's
sources, in either of apt's two formats.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from swingbot_worker import InfraError, lease, process

APT_DIR = Path("/etc/apt")
APT_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class AptSource:
    """One apt source; `options` as in a one-line entry, without the brackets."""

    uri: str
    suite: str
    components: tuple[str, ...]
    options: str = ""


def one_line_sources(text: str) -> Iterator[AptSource]:
    """Yield the `deb` entries of a sources.list."""
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[([^]]*)\]\s+)?(\S+)\s+(\S+)\s+([^#]+)", line)
        if match:
            yield AptSource(match[2], match[3], tuple(match[4].split()), (match[1] or "").strip())


def deb822_sources(text: str) -> Iterator[AptSource]:
    """Yield the `deb` entries of a *.sources file.

    Embedded keys are ignored in favour of Debian's keyring.
    """
    for stanza in re.split(r"\n\s*\n", text):
        keys = {
            name.lower(): value.strip()
            for name, value in re.findall(r"^([A-Za-z-]+):((?:.*)(?:\n[ \t].*)*)", stanza, re.M)
        }
        if "deb" not in keys.get("types", "").split() or keys.get("enabled", "yes").lower() == "no":
            continue
        signed_by = keys.get("signed-by", "")
        options = [f"signed-by={signed_by}"] if signed_by.startswith("/") else []
        options += ["trusted=yes"] if keys.get("trusted", "").lower() == "yes" else []
        for uri in keys.get("uris", "").split():
            for suite in keys.get("suites", "").split():
                yield AptSource(
                    uri, suite, tuple(keys.get("components", "").split()), " ".join(options)
                )


def system_sources(apt_dir: Path = APT_DIR) -> list[AptSource]:
    """Return every `deb` source of this host."""
    sources: list[AptSource] = []
    for path in [apt_dir / "sources.list", *sorted((apt_dir / "sources.list.d").glob("*.list"))]:
        sources += one_line_sources(path.read_text()) if path.is_file() else []
    for path in sorted((apt_dir / "sources.list.d").glob("*.sources")):
        sources += deb822_sources(path.read_text())
    return sources


def non_free_list(sources: list[AptSource], codename: str) -> str:
    """Return a sources.list with non-free of the host's Debian mirrors for release `codename`."""
    mirrors = [
        source for source in sources if source.suite == codename and "main" in source.components
    ]
    if not mirrors:
        raise InfraError(
            f"apt on this host has no source of Debian {codename} main; add one to "
            "/etc/apt/sources.list."
        )
    return "".join(
        f"deb {f'[{source.options}] ' if source.options else ''}{source.uri} {source.suite} "
        "non-free\n"
        for source in mirrors
    )


def is_fetched(package: str, cache: Path) -> bool:
    """Return whether `fetched` would return without network access."""
    return (cache / "debian" / package / "version").exists()


def fetched(package: str, cache: Path) -> Path:
    """Return the directory of the unpacked non-free `package`, which is downloaded once.

    Its file `version` has the package's version.
    """
    folder = cache / "debian" / package
    if (folder / "version").exists():
        return folder
    with lease.cache_entry(folder):
        if not (folder / "version").exists():
            _fetch(package, folder)
    return folder


def _fetch(package: str, folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{package}-") as name:
        work = Path(name)
        for part in ("state/lists/partial", "cache/archives/partial", "debs", "root"):
            (work / part).mkdir(parents=True)
        (work / "sources.list").write_text(non_free_list(system_sources(), _codename()))
        apt = ["apt-get", "-q", *_private(work)]
        for command in ([*apt, "update"], [*apt, "download", package]):
            done = process.output(command, timeout=APT_SECONDS, cwd=work / "debs")
            if done.rc != 0:
                last = next(
                    (line for line in reversed(done.text.splitlines()) if line.startswith("E:")),
                    "no reason given",
                )
                raise InfraError(
                    f"apt could not download {package} from Debian non-free ({last}); check the "
                    f"network, or put your own {package} into benchmarks.dir."
                )
        deb = next((work / "debs").glob("*.deb"))
        if process.output(["dpkg", "-x", deb, work / "root"], timeout=60).rc != 0:
            raise InfraError(f"dpkg could not unpack {deb.name}; delete {folder} and retry.")
        (work / "root" / "version").write_text(deb.name.removesuffix(".deb"))
        shutil.rmtree(folder, ignore_errors=True)
        (work / "root").rename(folder)


def _private(work: Path) -> list[str]:
    settings = {
        "Dir::State": work / "state",
        "Dir::Cache": work / "cache",
        "Dir::Etc::SourceList": work / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State::status": "/var/lib/dpkg/status",
        "APT::Sandbox::User": "root",  # the user _apt may have no access to the cache
    }
    return [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]


def _codename() -> str:
    match = re.search(r'^VERSION_CODENAME="?(\w+)', Path("/etc/os-release").read_text(), re.M)
    if match is None:
        raise InfraError(
            "/etc/os-release has no VERSION_CODENAME; netperf can be downloaded only on Debian. "
            "Put your own netperf into benchmarks.dir."
        )
    return match[1]
