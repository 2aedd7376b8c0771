"""Export raw results to a directory: safe to repeat, checks every sha256.

`app/database_raw.py` has those of the service on this host, `app/remote/http_raw.py` those of a
service elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, Final, Protocol

from swingbot.app.keep.progress import CopyProgress, amount
from swingbot.app.limits import OUTPUT_BYTES
from swingbot.core.raw import tables
from swingbot.core.raw.readme import readme
from swingbot.core.raw.tar_members import members
from swingbot.core.text.numbers import count
from swingbot.service.ports import RequestError
from swingbot_jobs.language.program import Program

Row = dict[str, Any]
_GIB: Final = 1 << 30
_OVERHEAD_BYTES: Final = 4096  # of a file, link or directory, for its name and its last block


class FileMissing(Exception):
    """The service does not have a file; the message says why."""


class ExportTooLarge(OSError):
    """What is written would take more than the size that is allowed."""


class LeadsElsewhere(OSError):
    """A file would be written outside of the directory, or through a link in it."""


class RawResults(Protocol):
    """Each method raises NotFound, and BadId for an object without raw results."""

    def manifest(self, id: str) -> Row:
        """`files` ([{"path", "sha256", "size"}]) and `boots` (each with `runs`) of an object."""
        ...

    def content(self, id: str, file: Row) -> Iterator[bytes]:
        """The pieces of a file of the manifest. Raises FileMissing."""
        ...

    def samples(self, id: str) -> Iterator[Mapping[str, Any]]:
        """Rows of samples.csv."""
        ...


class Export:
    """Export to one directory, which gets at most `max_size` bytes.

    `notes`: missing items and why; `kept`, `fetched`: numbers of files.
    """

    def __init__(
        self,
        source: RawResults,
        out: Path,
        programs: Mapping[str, Program],
        say: Callable[[str], None],
        max_size: int = OUTPUT_BYTES,
    ) -> None:
        self._source, self._out = source, out
        self._programs, self._say = programs, say
        self._max_size = self._left = max_size
        self._sums: dict[str, str] = {}
        self.notes: list[str] = []
        self.fetched, self.kept, self.samples, self.runs, self.bytes = 0, 0, 0, 0, 0

    def run(self, id: str, *, kernels: bool = True) -> None:
        """Fetch everything of c5, e6, b2, i1, r4, o7 or x12.

        Raises NotFound, RequestError if it is too large, OSError if the directory is not writable.
        """
        manifest = self._source.manifest(id)
        files = [
            file for file in manifest["files"] if kernels or not file["path"].startswith("kernels/")
        ]
        boots = {boot["id"]: boot for boot in manifest["boots"]}
        archives = {name: _archive(boot, files) for name, boot in boots.items()}
        size = sum(file["size"] for file in files)
        unpacked = sum(archive["size"] for archive in archives.values() if archive is not None)
        self._say(
            f"{id} has {count(len(files), 'file')} of {amount(size)}, and {amount(unpacked)} to"
            f" unpack; at most {amount(self._max_size)} are written (--max-size)"
        )
        if (needed := size + unpacked + _OVERHEAD_BYTES * len(files)) > self._max_size:
            raise RequestError(
                f"{id} takes {amount(needed)}, more than {amount(self._max_size)}: give --max-size"
                f" {-(-needed // _GIB) + 1}G, or try --without-kernels"
            )
        self._make(self._out)
        progress = CopyProgress("raw results", len(files), size, self._say)
        for file in files:
            self._fetch_file(id, file, progress)
        for name, boot in boots.items():
            self._unpack(boot, manifest["kind"], archives[name])
        self._write_samples(self._source.samples(id))
        self._write("runs.csv", tables.csv_lines(tables.RUNS, tables.run_rows(boots.values())))
        self._write("facts.csv", tables.csv_lines(tables.FACTS, tables.fact_rows(boots.values())))
        self._write("manifest.json", [json.dumps(manifest, indent=1) + "\n"])
        self._write("README", [readme(manifest, self.notes)])
        self._write(
            "SHA256SUMS", (f"{sha256}  {path}\n" for path, sha256 in sorted(self._sums.items()))
        )
        self.runs = sum(len(boot["runs"]) for boot in boots.values())

    # --- unmodified files ---

    def _fetch_file(self, id: str, file: Row, progress: CopyProgress) -> None:
        target = self._place(file["path"])
        if (
            target.is_file()
            and target.stat().st_size == file["size"]
            and _sha256(target) == file["sha256"]
        ):
            self._take(_OVERHEAD_BYTES + file["size"])
            self._sums[file["path"]] = file["sha256"]
            self.kept += 1
            progress.add(file["size"])
            return
        try:
            digest = self._put(file["path"], self._source.content(id, file))
        except FileMissing as error:
            reason = str(error)
        else:
            if digest == file["sha256"]:
                self.fetched += 1
                self.bytes += file["size"]
                progress.add(file["size"])
                return
            target.unlink()
            self._sums.pop(file["path"], None)
            reason = "its content does not match its sha256"
        self.notes.append(f"{file['path']}: {reason}")

    # --- a directory per boot and per run ---

    def _unpack(self, boot: Row, kind: str, results: Row | None) -> None:
        archive = None if results is None else results["path"]
        place = (
            f"{boot['id']}/"
            if archive is None and kind != "boot"
            else (archive or "").removesuffix("results.tar")
        )
        self._write(
            f"{place}facts.json", [json.dumps(boot["facts"], indent=1, sort_keys=True) + "\n"]
        )
        roots = {
            (run["unit_job"], run["run"]): run["result_root"]
            for run in boot["runs"]
            if run["result_root"]
        }
        for root in roots.values():
            self._link(root, place)
        if archive is not None and (self._out / archive).is_file():
            self._unpack_archive(self._out / archive, boot["id"], place, roots)

    def _unpack_archive(
        self, archive: Path, boot: str, place: str, roots: Mapping[tuple[str, int], str]
    ) -> None:
        """Extract results.tar: files of runs to their directories, those of the testbox to the
        boot's.
        """
        with archive.open("rb") as tar:
            for member in members(tar, lambda note: self.notes.append(f"{boot}: {note}")):
                root = (
                    roots.get((member.unit_job, member.run))
                    if member.unit_job is not None
                    else place.rstrip("/")
                )
                if root is None:
                    self.notes.append(
                        f"{boot}: {member.unit_job}/{member.run} in results.tar is not a run of"
                        " this boot; it is only in results.tar"
                    )
                    continue
                try:
                    self._put(f"{root}/{member.path}".lstrip("/"), [member.read()])
                except (tarfile.ReadError, LeadsElsewhere) as error:
                    self.notes.append(f"{boot}: {error}")

    def _link(self, root: str, place: str) -> None:
        """Link `boot` in a run's directory to the boot's directory, to store a console log once."""
        directory = self._place(f"{root}/boot").parent
        self._make(directory)
        self._take(_OVERHEAD_BYTES)
        link, target = directory / "boot", os.path.relpath(self._out / place, directory)
        if not link.is_symlink() or os.readlink(link) != target:
            link.unlink(missing_ok=True)
            link.symlink_to(target)

    # --- tables ---

    def _write_samples(self, samples: Iterator[Mapping[str, Any]]) -> None:
        """Write samples.csv, each run's stats.json, and metrics.csv, in one pass."""
        metrics: set[str] = set()

        def rows() -> Iterator[Mapping[str, Any]]:
            for _, run in groupby(
                samples, key=lambda row: (row["boot"], row["unit_job"], row["run"])
            ):
                root, values = "", dict[str, list[float]]()
                for row in run:
                    root = row["result_root"] or ""
                    values.setdefault(row["metric"], []).append(row["value"])
                    self.samples += 1
                    yield row
                metrics.update(values)
                self._write_stats(root, values)

        self._write(
            "samples.csv",
            tables.csv_lines(tables.SAMPLES, rows()),
        )
        self._write(
            "metrics.csv",
            tables.csv_lines(tables.METRICS, tables.metric_rows(self._programs, metrics)),
        )

    def _write_stats(self, root: str, values: Mapping[str, list[float]]) -> None:
        if root:
            stats = {
                metric: numbers[0] if len(numbers) == 1 else numbers
                for metric, numbers in sorted(values.items())
            }
            self._write(f"{root}/stats.json", [json.dumps(stats, indent=1) + "\n"])

    # --- writing ---

    def _take(self, size: int) -> None:
        """Raises ExportTooLarge for bytes beyond those that are allowed."""
        self._left -= size
        if self._left < 0:
            raise ExportTooLarge(
                f"{self._out} would have more than {amount(self._max_size)}, and what is missing"
                " was not fetched: give a larger --max-size to go on"
            )

    def _make(self, directory: Path) -> None:
        new = [one for one in (directory, *directory.parents) if not one.exists()]
        for one in reversed(new):
            self._take(_OVERHEAD_BYTES)
            one.mkdir(exist_ok=True)

    def _place(self, path: str) -> Path:
        """Return where a file is written. Raises LeadsElsewhere.

        The names come from a service and from guests, and a link of one run could lead another one
        anywhere.
        """
        target = self._out
        for part in path.split("/"):
            if part in ("", ".", "..") or (target != self._out and target.is_symlink()):
                raise LeadsElsewhere(
                    f"{path[:200]!r} is refused: it leads out of the directory or through a link"
                )
            target /= part
        return target

    def _write(self, path: str, lines: Iterable[str]) -> None:
        self._put(path, (line.encode() for line in lines))

    def _put(self, path: str, chunks: Iterable[bytes]) -> str:
        """Write a file atomically; record and return its sha256."""
        target = self._place(path)
        self._make(target.parent)
        self._take(_OVERHEAD_BYTES)
        temporary = target.with_name(target.name + ".part")
        digest = hashlib.sha256()
        try:
            with temporary.open("wb") as out:
                for chunk in chunks:
                    self._take(len(chunk))
                    digest.update(chunk)
                    out.write(chunk)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
        if path != "SHA256SUMS":
            self._sums[path] = digest.hexdigest()
        return digest.hexdigest()


def _archive(boot: Row, files: Iterable[Row]) -> Row | None:
    """Return the results.tar of a boot. Equal results of two boots are one file in the store, but
    two files in the export.
    """
    sha256 = ((boot["files"] or {}).get("results.tar") or {}).get("sha256")
    found = [
        file for file in files if file["sha256"] == sha256 and file["path"].endswith("results.tar")
    ]
    own = f"{boot['id']}/results.tar"
    return min(found, key=lambda file: (file["path"] != own, file["path"]), default=None)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
