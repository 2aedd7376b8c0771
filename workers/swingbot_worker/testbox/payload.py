"""The files that a testbox gets to run a job: the engine's and, for a guest, a root file system."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from swingbot_jobs.testbox.definition import Testbox
from swingbot_worker import engine
from swingbot_worker.rootfs import RECORD, cpio
from swingbot_worker.rootfs.cpio import Entry
from swingbot_worker.testbox.driver import Job, Payload


def in_guest(testbox: Testbox, job: Job) -> Payload:
    """Return the payload of a testbox that boots swingbot's root file system with only the job.

    Raises InfraError that names the packages to install.
    """
    entries = _entries(testbox, job, alone=True)
    rootfs = engine.prepare(testbox, job.unit_jobs, job.site)
    return Payload(script=_text(entries), entries=entries, rootfs=rootfs)


def beside_others(testbox: Testbox, job: Job) -> Payload:
    """Return the payload of a testbox with its own system.

    Raises InfraError if the job cannot run.
    """
    entries = _entries(testbox, job, alone=False)
    return Payload(script=_text(entries), entries=entries)


def keep(payload: Payload, out: Path) -> None:
    """Save the job's archive and the root file system's record, to reproduce the boot elsewhere."""
    (out / "job.cpio").write_bytes(cpio.archive(cpio.with_parents(payload.entries)))
    shutil.copyfile(payload.system.record, out / RECORD)


def _entries(testbox: Testbox, job: Job, *, alone: bool) -> list[Entry]:
    return engine.job_entries(testbox, job.unit_jobs, job.site, job.built_from, alone=alone)


def _text(entries: Sequence[Entry]) -> bytes:
    """Return the generated script, followed by each program's `run` as comments."""
    script, *runs = entries
    return script.content + b"".join(
        b"\n# " + b"\n# ".join([run.path.encode(), *run.content.splitlines()]) + b"\n"
        for run in runs
    )
