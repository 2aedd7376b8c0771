"""The `cluster` driver: two testboxes with a wire, booted into the same kernel through their own drivers, one to serve and one to measure.

Both are leased at once or not at all, and neither leaves its own system before all is well with both. Their boots go on beside each other and find
each other over the wire; what comes of both is one outcome. Results and console at the top are the client's, the server's are named so.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from swingbot_jobs.contract.fact_sheet import facts_of
from swingbot_jobs.contract.facts import OF_SERVER
from swingbot_jobs.reading.parse import read_results
from swingbot_jobs.testbox.box import ClusterDriver
from swingbot_jobs.testbox.wire import CLIENT, ROLES, SERVER
from swingbot_worker import InfraError, OrderError, lease
from swingbot_worker.rootfs.cpio import Entry
from swingbot_worker.testbox import virtual
from swingbot_worker.testbox.cluster import script, wire
from swingbot_worker.testbox.cluster.check import check
from swingbot_worker.testbox.cluster.judge import judge
from swingbot_worker.testbox.cluster.pair import Pair, Played
from swingbot_worker.testbox.request import Boot, Fact, Request
from swingbot_worker.testbox.ssh import kconfig

__all__ = ["boot", "check", "job_script"]
# What each driver leaves that is kept; the server's with its role before the name. QEMU's arguments are one guest's, which alone repeats nothing.
KEPT = ("console.log", "results.tar", "qemu.log", "driver.log", "job.cpio", "rootfs.json")
OF_BOTH = ("qemu.json",)
# From one box being ready for the other until that one is, at most: this, and some boots.
WAIT_SECONDS = 20
FILES = (
    *(f"{SERVER}.{name}" for name in (*KEPT, *OF_BOTH)),
    *(f"{CLIENT}.{name}" for name in OF_BOTH),
)


def boot(request: Request) -> Boot:
    """Boot both once. Raises InfraError for whatever is ours; both boxes are home then, or the phase `lost` was told."""
    driver = request.box.driver
    assert isinstance(driver, ClusterDriver)
    _check_kernel(request, driver)
    entries = _entries(request, driver)
    with _leases(request, driver) as locks:
        endings, spoilt = _sound_play(request, driver, entries, locks)
    _keep(request.out)
    verdict = judge(request.box.name, (endings[SERVER].ending, endings[CLIENT].ending))
    facts = {
        **endings[CLIENT].facts,
        **_server_facts(endings[SERVER], request.out),
        **_names(driver),
    }
    return Boot(
        verdict=verdict, facts=facts | ({"boots_spoilt_by_qemu": spoilt} if driver.virtual else {})
    )


def _sound_play(
    request: Request,
    driver: ClusterDriver,
    entries: Mapping[str, Sequence[Entry]],
    locks: Sequence[int],
) -> tuple[Mapping[str, Played], int]:
    """Boot both until QEMU itself has spoilt neither; how they ended, and how often it did."""
    for spoilt in range(virtual.STALE_BOOTS):
        with tempfile.TemporaryDirectory(prefix="swingbot-wire-") as work:
            pair = Pair(request, driver)
            nodes = {
                role: _node(
                    request,
                    driver,
                    role,
                    entries[role],
                    locks,
                    wire.devices(driver, role, Path(work)),
                    pair,
                )
                for role in ROLES
            }
            endings = pair.play(nodes)
        stale = next(
            (
                played.ending
                for played in endings.values()
                if isinstance(played.ending.fault, virtual.StaleCode)
            ),
            None,
        )
        if stale is None or spoilt + 1 == virtual.STALE_BOOTS:
            return endings, spoilt
        request.tell(f"QEMU tripped over its own translation on {stale.who}; booting both again")
    raise AssertionError("unreachable")


def job_script(request: Request) -> bytes:
    """What runs on both, to be kept with the results: each part under a line that says what it is. The token is another one."""
    driver = request.box.driver
    assert isinstance(driver, ClusterDriver)
    return b"".join(
        f"# --- {role}: {entry.path}\n".encode() + entry.content
        for role in ROLES
        for entry in _entries(request, driver)[role]
    )


def _check_kernel(request: Request, driver: ClusterDriver) -> None:
    config = kconfig.found(request, request.image.read_bytes())
    missing = kconfig.missing(driver.kconfig_needed, config) if config is not None else []
    if missing:
        lines = ", ".join(f"CONFIG_{option}=y" for option in missing)
        hint = " (the fragment net-virtio has them: vm-x86_64+net-virtio)" if driver.virtual else ""
        raise OrderError(
            f"The kernel lacks what the wire of cluster {request.box.name} needs: {lines}; add them to the tree's kernel configuration{hint}."
        )


def _entries(request: Request, driver: ClusterDriver) -> Mapping[str, Sequence[Entry]]:
    programs = request.site.jobs / "programs"
    words = script.Words(
        token=secrets.token_hex(8), wait=int(WAIT_SECONDS + 4 * request.box.boot_seconds)
    )

    def read(path: str) -> bytes:
        try:
            return (programs / path).read_bytes()
        except FileNotFoundError:
            raise InfraError(
                f"The program {path.partition('/')[0]} has no part for a cluster: {programs / path} is not there."
            ) from None

    return {role: script.entries(role, driver, request.unit_jobs, read, words) for role in ROLES}


@contextlib.contextmanager
def _leases(request: Request, driver: ClusterDriver) -> Iterator[list[int]]:
    cache = request.site.cache
    with contextlib.ExitStack() as stack:
        locks = stack.enter_context(
            lease.together(cache, driver.boxes, tell=request.tell, patience=request.patience)
        )
        if driver.virtual:  # the order of leases is that of the driver qemu: boxes, then the host
            locks.append(
                stack.enter_context(
                    lease.exclusive(cache, tell=request.tell, patience=request.patience)
                )
            )
        yield locks


def _node(
    request: Request,
    driver: ClusterDriver,
    role: str,
    entries: Sequence[Entry],
    locks: Sequence[int],
    devices: wire.Devices,
    pair: Pair,
) -> Request:
    out = request.out / role
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)

    def ready() -> None:
        pair.ready(role)
        devices.wait()

    node = pair.node(role, entries=entries, locks=locks, devices=devices.argv, ready=ready)
    return replace(request, box=driver.nodes[role], out=out, node=node, tell_phase=pair.phase(role))


def _keep(out: Path) -> None:
    """The nodes' files beside each other, as an outcome names them."""
    for role in ROLES:
        for name in (*KEPT, *OF_BOTH):
            path = out / role / name
            if path.is_file():
                path.replace(
                    out / (name if role == CLIENT and name not in OF_BOTH else f"{role}.{name}")
                )
        shutil.rmtree(out / role, ignore_errors=True)


def _server_facts(played: Played, out: Path) -> Mapping[str, Fact]:
    """All that is known of the server, its names behind `server.`."""
    results = out / f"{SERVER}.results.tar"
    told = facts_of(read_results(results).facts) if results.is_file() else {}
    return {f"{OF_SERVER}{name}": value for name, value in {**told, **played.facts}.items()}


def _names(driver: ClusterDriver) -> Mapping[str, Fact]:
    return {f"{role}_testbox": driver.nodes[role].name for role in ROLES}
