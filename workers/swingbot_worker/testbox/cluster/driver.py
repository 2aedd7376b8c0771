"""The driver `cluster`: two testboxes with a wire, booted into the same kernel through their own
drivers, one to serve and one to measure.

Both are leased at once or not at all, and neither leaves its own system before all is well with
both. Their boots go on beside each other and find each other over the wire; what comes of both is
one outcome. Results and console at the top are the client's, the server's are named so.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from swingbot_jobs.contract.fact_sheet import facts_of
from swingbot_jobs.contract.facts import OF_SERVER
from swingbot_jobs.reading.parse import read_results
from swingbot_jobs.testbox.definition import ClusterDriver, Testbox
from swingbot_jobs.testbox.tuning import TuningFinding
from swingbot_jobs.testbox.wire import CLIENT, ROLES, SERVER
from swingbot_worker import InfraError, OrderError, rootfs
from swingbot_worker.rootfs.cpio import Entry
from swingbot_worker.testbox import driver
from swingbot_worker.testbox.cluster import check, script, wire
from swingbot_worker.testbox.cluster.cluster_verdict import judge
from swingbot_worker.testbox.cluster.pair import NodePair, NodeRun
from swingbot_worker.testbox.driver import (
    SPOILT_BOOTS,
    Boot,
    Driver,
    Fact,
    Job,
    MachineFault,
    Node,
    Payload,
    Request,
    held_already,
)
from swingbot_worker.testbox.kernel import Kernel

# QEMU's arguments are one guest's, which alone repeats nothing: no node's stand at the top.
OF_BOTH = ("qemu.json",)
# What each driver leaves that is kept; the server's with its role before the name.
KEPT = tuple(name for name in driver.FILES if name not in ("job.sh", *OF_BOTH))
FILES = (
    *(f"{SERVER}.{name}" for name in (*KEPT, *OF_BOTH)),
    *(f"{CLIENT}.{name}" for name in OF_BOTH),
)
# From one box being ready for the other until that one is, at most: this, and some boots.
WAIT_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Cluster:
    """Boots both testboxes of the cluster `box`; `nodes` are their drivers, by role."""

    box: Testbox
    how: ClusterDriver
    nodes: Mapping[str, Driver]

    def payload(self, job: Job) -> Payload:
        wait = int(WAIT_SECONDS + 4 * self.box.boot_seconds)
        words = script.HandshakeTerms(token=secrets.token_hex(8), wait=wait)
        read = partial(_part, job.site.jobs / "programs")
        entries = {
            role: script.entries(role, self.how, job.unit_jobs, read, words) for role in ROLES
        }
        system = rootfs.prepare(job.unit_jobs, job.site)
        return Payload(
            script=_text(entries),
            parts={
                role: Payload(script=b"", entries=entries[role], rootfs=system) for role in ROLES
            },
        )

    def boot(self, request: Request) -> Boot:
        self._check_kernel(request.kernel)
        with request.lease() as locks:
            endings, spoilt = self._sound_play(request, locks)
        _keep(request.out)
        verdict = judge(self.box.name, (endings[SERVER].ending, endings[CLIENT].ending))
        facts = {
            **endings[CLIENT].facts,
            **_server_facts(endings[SERVER], request.out),
            **{f"{role}_testbox": self.how.nodes[role].name for role in ROLES},
        }
        return Boot(
            verdict=verdict,
            facts=facts | ({"boots_spoilt_by_qemu": spoilt} if self.how.virtual else {}),
        )

    def check(self) -> list[TuningFinding]:
        return check.check(self.how, self.nodes)

    def _check_kernel(self, kernel: Kernel) -> None:
        if missing := kernel.lacks(self.how.kconfig_needed):
            lines = ", ".join(f"CONFIG_{option}=y" for option in missing)
            hint = " (the fragment net-virtio has them: vm-x86_64+net-virtio)"
            raise OrderError(
                f"The kernel lacks what the wire of cluster {self.box.name} needs: {lines}; "
                f"add them to the tree's kernel configuration{hint if self.how.virtual else ''}."
            )

    def _sound_play(
        self, request: Request, locks: Sequence[int]
    ) -> tuple[Mapping[str, NodeRun], int]:
        """Boot both until QEMU itself has spoilt neither; how they ended, and how often it did."""
        for spoilt in range(SPOILT_BOOTS):
            with tempfile.TemporaryDirectory(prefix="swingbot-wire-") as work:
                pair = NodePair(self.how, self.nodes, request.tell_phase)
                requests = {
                    role: self._node(role, request, locks, pair, Path(work)) for role in ROLES
                }
                endings = pair.play(requests)
            ended = (played.ending for played in endings.values())
            stale = next(
                (ending for ending in ended if isinstance(ending.fault, MachineFault)), None
            )
            if stale is None or spoilt + 1 == SPOILT_BOOTS:
                return endings, spoilt
            request.tell(
                f"QEMU tripped over its own translation on {stale.who}; booting both again"
            )
        raise AssertionError("unreachable")

    def _node(
        self, role: str, request: Request, locks: Sequence[int], pair: NodePair, work: Path
    ) -> Request:
        """One node's part of the request."""
        out, devices = request.out / role, wire.devices(self.how, role, work)
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)

        def ready() -> None:
            pair.ready(role)
            devices.wait()

        return replace(
            request,
            payload=request.payload.parts[role],
            lease=held_already(locks),
            out=out,
            tell_phase=pair.phase(role),
            node=Node(
                devices=devices.argv,
                ready=ready,
                given_up=partial(pair.why_give_up, role),
                spoilt_boots=1,
            ),
        )


def _part(programs: Path, path: str) -> bytes:
    """A file of `jobs/programs`."""
    try:
        return (programs / path).read_bytes()
    except FileNotFoundError:
        raise InfraError(
            f"The program {path.partition('/')[0]} has no part for a cluster: {programs / path} is "
            "not there."
        ) from None


def _text(entries: Mapping[str, Sequence[Entry]]) -> bytes:
    """What runs on both: each file under a line that says what it is."""
    return b"".join(
        f"# --- {role}: {entry.path}\n".encode() + entry.content
        for role in ROLES
        for entry in entries[role]
    )


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


def _server_facts(played: NodeRun, out: Path) -> Mapping[str, Fact]:
    """All that is known of the server, its names behind `server.`."""
    results = out / f"{SERVER}.results.tar"
    told = facts_of(read_results(results).facts) if results.is_file() else {}
    return {f"{OF_SERVER}{name}": value for name, value in {**told, **played.facts}.items()}
