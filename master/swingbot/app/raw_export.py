"""Export raw results to a directory: safe to repeat, resumes, checks every sha256."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tarfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from swingbot.app.raw_sources import FileUnavailable, RawSource
from swingbot.core.raw import tables
from swingbot.core.raw.readme import readme
from swingbot.core.raw.tar_members import members
from swingbot_jobs.language.program import Program

Row = dict[str, Any]
_CHUNK: Final = 1 << 20
_SAY_SECONDS: Final = 2.0
_PART: Final = re.compile(r"[-a-zA-Z0-9+=:.%_@,]{1,255}")
_RESULT_ROOT: Final = re.compile(r"result(/[-a-zA-Z0-9+=:.%_]{1,255}){7}/[0-9]{1,9}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


class TransferProgress:
    """Reports progress in bytes and the estimated remaining time every two seconds."""

    def __init__(self, total: int, say: Callable[[str], None]) -> None:
        self._total, self._say, self._done, self._fetched = max(1, total), say, 0, 0
        self._began = self._said = time.monotonic()

    def add(self, size: int, *, fetched: bool = True) -> None:
        self._done += size
        self._fetched += size if fetched else 0
        now = time.monotonic()
        if now - self._said >= _SAY_SECONDS:
            self._said = now
            remaining = (self._total - self._done) * (now - self._began) / max(1, self._fetched)
            more = f", about {remaining:.0f} s left" if self._fetched else ""
            self._say(
                f"{self._done / 1e6:.1f} of {self._total / 1e6:.1f} MB,"
                f" {100 * self._done / self._total:.0f} %{more}"
            )


class Export:
    """Export to one directory.

    `notes`: missing items and why; `kept`, `fetched`: numbers of files.
    """

    def __init__(
        self,
        source: RawSource,
        out: Path,
        programs: Mapping[str, Program],
        say: Callable[[str], None],
    ) -> None:
        self._source, self._out, self._programs, self._say = source, out, programs, say
        self._sums: dict[str, str] = {}
        self.notes: list[str] = []
        self.fetched, self.kept, self.samples, self.runs, self.bytes = 0, 0, 0, 0, 0

    def run(self, *, kernels: bool = True) -> None:
        """Fetch everything. Raises OSError if the directory is not writable, SourceFailed."""
        manifest = self._source.manifest()
        files = [
            file
            for file in manifest["files"]
            if self._sound(file) and (kernels or not file["path"].startswith("kernels/"))
        ]
        self._out.mkdir(parents=True, exist_ok=True)
        progress = TransferProgress(sum(file["size"] for file in files), self._say)
        for file in files:
            self._fetch_file(file, progress)
        boots = {boot["id"]: boot for boot in manifest["boots"]}
        for boot in boots.values():
            self._unpack(boot, manifest["kind"], files)
        self._write_samples(boots)
        self._write("runs.csv", tables.csv_lines(tables.RUNS, tables.run_rows(boots.values())))
        self._write("facts.csv", tables.csv_lines(tables.FACTS, tables.fact_rows(boots.values())))
        self._write("manifest.json", [json.dumps(manifest, indent=1) + "\n"])
        self._write("README", [readme(manifest, self.notes, self._source.name)])
        self._write(
            "SHA256SUMS", (f"{sha256}  {path}\n" for path, sha256 in sorted(self._sums.items()))
        )
        self.runs = sum(len(boot["runs"]) for boot in boots.values())

    def _sound(self, file: Row) -> bool:
        """Validate a manifest entry: a foreign manifest must not lead out of the directory."""
        parts = str(file.get("path", "")).split("/")
        sound = all(
            _PART.fullmatch(part) and part.strip(".") for part in parts
        ) and _SHA256.fullmatch(str(file.get("sha256", "")))
        if not sound or not isinstance(file.get("size"), int):
            self.notes.append(f"{str(file.get('path'))[:100]!r} is not a valid path of a result")
        return bool(sound) and isinstance(file.get("size"), int)

    # --- unmodified files ---

    def _fetch_file(self, file: Row, progress: TransferProgress) -> None:
        target = self._out / file["path"]
        self._sums[file["path"]] = file["sha256"]
        if (
            target.is_file()
            and target.stat().st_size == file["size"]
            and _sha256(target) == file["sha256"]
        ):
            self.kept += 1
            progress.add(file["size"], fetched=False)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(target.name + ".part")
        try:
            # A partial file of other content is discarded and fetched again, once.
            complete = self._fetch(file, part, progress) or self._fetch(file, part, progress)
        except FileUnavailable as error:
            complete, reason = False, str(error)
        else:
            reason = "its content does not match its sha256"
        if complete:
            part.replace(target)
            self.fetched += 1
            self.bytes += file["size"]
        else:
            with suppress(FileNotFoundError):
                part.unlink()
            del self._sums[file["path"]]
            self.notes.append(f"{file['path']}: {reason}")

    def _fetch(self, file: Row, part: Path, progress: TransferProgress) -> bool:
        """Continue the download `part`; on a wrong sha256, delete it and return False."""
        digest = hashlib.sha256()
        begin = part.stat().st_size if part.is_file() and part.stat().st_size <= file["size"] else 0
        with part.open("r+b" if begin else "wb") as out:
            for chunk in iter(lambda: out.read(_CHUNK) if begin else b"", b""):
                digest.update(chunk)
            size = begin
            progress.add(begin, fetched=False)
            for chunk in self._source.content(file, begin) if begin < file["size"] else ():
                size += len(chunk)
                if size > file["size"]:
                    break
                digest.update(chunk)
                out.write(chunk)
                progress.add(len(chunk))
        if digest.hexdigest() == file["sha256"]:
            return True
        progress.add(-size, fetched=False)
        part.unlink()
        return False

    # --- a directory per boot and per run ---

    def _unpack(self, boot: Row, kind: str, files: Iterable[Row]) -> None:
        sha256 = ((boot["files"] or {}).get("results.tar") or {}).get("sha256")
        archives = sorted(
            file["path"]
            for file in files
            if file["sha256"] == sha256 and file["path"].endswith("results.tar")
        )
        # Equal results of two boots are one file in the store, but two files in the export.
        own = f"{boot['id']}/results.tar"
        archive = own if own in archives else next(iter(archives), None)
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
            if _RESULT_ROOT.fullmatch(run["result_root"] or "")
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
                except tarfile.ReadError as error:
                    self.notes.append(f"{boot}: {error}")

    def _link(self, root: str, place: str) -> None:
        """Link `boot` in a run's directory to the boot's directory, to store a console log once."""
        directory = self._out / root
        directory.mkdir(parents=True, exist_ok=True)
        link, target = directory / "boot", os.path.relpath(self._out / place, directory)
        if not link.is_symlink() or os.readlink(link) != target:
            link.unlink(missing_ok=True)
            link.symlink_to(target)

    # --- tables ---

    def _write_samples(self, boots: Mapping[str, Row]) -> None:
        """Write samples.csv, each run's stats.json, and metrics.csv, in one pass."""
        metrics: set[str] = set()

        def rows() -> Iterator[Row]:
            for _, run in groupby(
                self._source.samples(), key=lambda row: (row["boot"], row["unit_job"], row["run"])
            ):
                of_run = list(run)
                metrics.update(row["metric"] for row in of_run)
                self._write_stats(of_run)
                self.samples += len(of_run)
                yield from of_run

        self._write(
            "samples.csv",
            tables.csv_lines(
                tables.SAMPLES,
                tables.with_units(rows(), lambda metric: tables.unit_of(self._programs, metric)),
            ),
        )
        self._write(
            "metrics.csv",
            tables.csv_lines(tables.METRICS, tables.metric_rows(self._programs, metrics)),
        )

    def _write_stats(self, rows: Iterable[Row]) -> None:
        values: dict[str, list[float]] = {}
        root = ""
        for row in rows:
            root = row["result_root"] or ""
            values.setdefault(row["metric"], []).append(row["value"])
        if _RESULT_ROOT.fullmatch(root):
            stats = {
                metric: numbers[0] if len(numbers) == 1 else numbers
                for metric, numbers in sorted(values.items())
            }
            self._write(f"{root}/stats.json", [json.dumps(stats, indent=1) + "\n"])

    # --- writing ---

    def _write(self, path: str, lines: Iterable[str]) -> None:
        self._put(path, (line.encode() for line in lines))

    def _put(self, path: str, chunks: Iterable[bytes]) -> None:
        """Write a file atomically and record its sha256."""
        target = self._out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(target.name + ".part")
        digest = hashlib.sha256()
        with temporary.open("wb") as out:
            for chunk in chunks:
                digest.update(chunk)
                out.write(chunk)
        temporary.replace(target)
        if path != "SHA256SUMS":
            self._sums[path] = digest.hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
