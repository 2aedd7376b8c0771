"""What a testbox outside of a cluster is given to run a job: files of the engine and, for a guest of its own, a root file system."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from swingbot_jobs.testbox.definition import Testbox
from swingbot_worker import engine
from swingbot_worker.rootfs import RECORD, cpio
from swingbot_worker.rootfs.cpio import Entry
from swingbot_worker.testbox.driver import Job, Payload


def in_guest(box: Testbox, job: Job) -> Payload:
    """For a testbox that boots our root file system, with nothing in it but the job. Raises InfraError with what to install."""
    entries = _entries(box, job, alone=True)
    rootfs = engine.prepare(box, job.unit_jobs, job.site)
    return Payload(script=_text(entries), entries=entries, rootfs=rootfs)


def beside_others(box: Testbox, job: Job) -> Payload:
    """For a testbox with a system of its own. Raises InfraError for a job that the engine can't run."""
    entries = _entries(box, job, alone=False)
    return Payload(script=_text(entries), entries=entries)


def keep(payload: Payload, out: Path) -> None:
    """What makes a boot repeatable elsewhere: the job's archive, and what the root file system holds."""
    (out / "job.cpio").write_bytes(cpio.archive(cpio.with_parents(payload.entries)))
    shutil.copyfile(payload.system.record, out / RECORD)


def _entries(box: Testbox, job: Job, *, alone: bool) -> list[Entry]:
    return engine.job_entries(box, job.unit_jobs, job.site, job.built_from, alone=alone)


def _text(entries: Sequence[Entry]) -> bytes:
    """The generated script, and behind it, as comments, the `run` of each program."""
    script, *runs = entries
    return script.content + b"".join(
        b"\n# " + b"\n# ".join([run.path.encode(), *run.content.splitlines()]) + b"\n"
        for run in runs
    )
