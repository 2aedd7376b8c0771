"""The `qemu` driver: one boot of a virtual testbox on this host."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from swingbot_jobs.testbox.box import QemuDriver
from swingbot_worker import InfraError, engine, lease, process, rootfs
from swingbot_worker.rootfs import cpio
from swingbot_worker.site import Site
from swingbot_worker.testbox import console, kvm, qemu
from swingbot_worker.testbox.request import Boot, Request
from swingbot_worker.testbox.verdict import BootStatus, Verdict
from swingbot_worker.testbox.watch import CONSOLE_BYTES, LOOK_SECONDS, Stop, Watch, ended, tail

# A root file system, an initrd and the logs of one boot.
FREE_BYTES = 128 << 20
# What QEMU 7.2 says of an image that is no kernel; where it names the file, that is what it could not load.
REFUSED_IMAGE = ("linux kernel too old", "without PVH ELF Note", "invalid kernel header")
# Leftovers of killed boots older than this are removed.
SCRATCH_SECONDS = 24 * 3600.0
# Boots in a row in which QEMU may trip over its own translation before we give up.
STALE_BOOTS = 3


class StaleCode(InfraError):
    """QEMU tripped over its own translation, as often as it may."""


def boot(request: Request) -> Boot:
    """Boot once in QEMU. Raises InfraError if a program is missing or QEMU itself fails."""
    box, site = request.box, request.site
    assert isinstance(box.driver, QemuDriver)
    _check_disk(request.out, site.cache)
    made, version, delay = (
        engine.prepare(box, request.unit_jobs, site),
        _version(),
        request.delay_us,
    )
    _note(request, made, delay)
    with tempfile.TemporaryDirectory(dir=_scratch(site), prefix="boot-") as work:
        files = qemu.Files(
            image=request.image,
            initrd=Path(work, "initrd"),
            console=request.console,
            results=request.results,
        )
        rootfs.with_job(made, request.job_entries(alone=True), files.initrd)
        with _leases(request) as locks:
            if box.driver.accel == "kvm":
                kvm.check(box, request.image, site)
            if request.node is not None:
                request.node.ready()
            request.tell_phase(
                "booting", "QEMU starts"
            )  # and no other phase: while the guest runs, its host is left alone
            verdict, stale = _sound_run(
                request,
                [
                    *qemu.qemu_argv(box, files, delay),
                    *(request.node.devices if request.node else ()),
                ],
                locks,
            )
    facts = {
        **made.facts,
        **qemu.facts(box, delay, version),
        "rootfs": made.key,
        "boots_spoilt_by_qemu": stale,
    }
    return Boot(verdict=verdict, facts=facts)


def _note(request: Request, made: rootfs.Rootfs, delay: int) -> None:
    """What makes this boot repeatable elsewhere: QEMU's arguments (files by name alone), the job's archive, what the root file system holds."""
    files = qemu.Files(
        image=Path("bzImage"),
        initrd=Path("initrd"),
        console=Path("console.log"),
        results=Path("results.tar"),
    )
    argv = [
        *qemu.qemu_argv(request.box, files, delay),
        *(request.node.devices if request.node else ()),
    ]
    (request.out / "qemu.json").write_text(json.dumps(argv, indent=1) + "\n")
    entries = request.job_entries(alone=True)
    (request.out / "job.cpio").write_bytes(cpio.archive(cpio.with_parents(entries)))
    shutil.copyfile(made.record, request.out / rootfs.RECORD)


@contextlib.contextmanager
def _leases(request: Request) -> Iterator[list[int]]:
    cache = request.site.cache
    if request.node is not None:
        yield list(request.node.locks)
        return
    with contextlib.ExitStack() as stack:
        locks = [
            stack.enter_context(
                lease.one_boot(
                    cache, request.box.name, tell=request.tell, patience=request.patience
                )
            )
        ]
        if not request.box.repeatable:
            locks.append(
                stack.enter_context(
                    lease.exclusive(cache, tell=request.tell, patience=request.patience)
                )
            )
        yield locks


def _sound_run(request: Request, argv: Sequence[str], locks: Sequence[int]) -> tuple[Verdict, int]:
    """Run until a boot is not spoilt by QEMU itself; its verdict, and how many were."""
    boots = (
        STALE_BOOTS if request.node is None else 1
    )  # a node of a cluster does not boot again alone
    for stale in range(boots):
        verdict = _run(request, argv, locks)
        if not console.trapped_on_stale_code(request.console.read_text(errors="replace")):
            return verdict, stale
        if stale + 1 < boots:
            request.tell(
                f"QEMU ran a breakpoint that the kernel had taken away already ({verdict.reason}); booting again"
            )
    raise StaleCode(
        f"QEMU ran breakpoints that the kernel had taken away, {STALE_BOOTS} boots in a row; QEMU 8.1 and later do not."
    )


def _run(request: Request, argv: Sequence[str], locks: Sequence[int]) -> Verdict:
    """Run QEMU to its end, or end it; then look at what it left."""
    for path in (request.console, request.results):
        path.write_bytes(b"")
    log = request.out / "qemu.log"
    watch = Watch(request.console, request.results, request.limits)
    stopped: Stop | None = None
    done: process.Completed | None = None
    try:
        done = process.run(
            argv,
            timeout=request.limits.wall,
            log=log,
            pass_fds=locks,
            watch=_watching(request, watch),
            watch_seconds=LOOK_SECONDS,
        )
    except Stop as stop:
        stopped = stop
    _cut(request.console)
    return _judge(request, log, done, stopped)


def _watching(request: Request, watch: Watch) -> Callable[[float], None]:
    if (node := request.node) is None:
        return watch

    def look(elapsed: float) -> None:
        if why := node.given_up():
            raise Stop(Verdict(status=BootStatus.TIMED_OUT, reason=why))
        watch(elapsed)

    return look


def _judge(
    request: Request, log: Path, done: process.Completed | None, stopped: Stop | None
) -> Verdict:
    """The console first, then the end marker, never the exit status: QEMU exits with 0 when the guest panics."""
    text = request.console.read_text(errors="replace")
    if told := console.judge(text):
        return told
    if ended(request.results):
        return Verdict(status=BootStatus.UP)
    _check_disk(request.out)  # QEMU says nothing when a write fails
    if stopped is not None and stopped.verdict is not None:
        return stopped.verdict
    last = console.last_line(text)
    after = f"last on the console: {last}" if last else "the console is empty"
    if done is None or done.timed_out:
        return Verdict(
            status=BootStatus.TIMED_OUT,
            reason=f"not done after {request.limits.wall:.0f} s; {after}",
        )
    if done.rc != 0 or "terminating on signal" in tail(
        log
    ):  # QEMU that is ended from outside exits with 0 too
        return _qemu_failed(request, log, done.rc)
    return Verdict(
        status=BootStatus.PANICKED,
        reason=f"the machine reset or switched itself off before the job was done; {after}",
    )


def _qemu_failed(request: Request, log: Path, rc: int) -> Verdict:
    """QEMU gave up: an image that it cannot load is the kernel's fault, all else is ours."""
    said = console.last_line(tail(log))
    if any(words in said for words in (*REFUSED_IMAGE, str(request.image))):
        return Verdict(status=BootStatus.PANICKED, reason=f"QEMU cannot load this image: {said}")
    raise InfraError(
        f"QEMU failed with status {rc} ({said or 'it said nothing'}); see {log} and the qemu settings of testbox {request.box.name}."
    )


def _check_disk(*folders: Path) -> None:
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(folder).free < FREE_BYTES:
            raise InfraError(
                f"The disk of {folder} has less than {FREE_BYTES >> 20} MiB left; make room."
            )


def _cut(path: Path) -> None:
    """Keep the beginning of a flooded console: the first words tell most."""
    if path.stat().st_size > CONSOLE_BYTES:
        with path.open("r+b") as file:
            file.truncate(CONSOLE_BYTES)


def _scratch(site: Site) -> Path:
    folder = site.cache / "boots"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        with contextlib.suppress(OSError):
            if time.time() - old.stat().st_mtime > SCRATCH_SECONDS:
                shutil.rmtree(old, ignore_errors=True)
    return folder


def _version() -> str:
    return process.output([qemu.PROGRAM, "--version"], timeout=60).text.partition("\n")[0]
