"""The driver `cluster`: boots the same kernel on a server and a client connected by a wire.

Each testbox boots through its own driver. Both are leased together or not at all, and neither
leaves its idle system before the checks of both succeed. The boots run in parallel, contact each
other over the wire, and produce one outcome. Files without a prefix are those of the client; the
files of the server have the prefix `server.`.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from swingbot_jobs.contract.deadline import EXTRA_SECONDS
from swingbot_jobs.contract.facts import OF_SERVER
from swingbot_jobs.testbox.definition import ClusterDriver, Testbox
from swingbot_jobs.testbox.tuning import TuningFinding
from swingbot_jobs.testbox.wire import CLIENT, ROLES, SERVER
from swingbot_worker import InfraError, rootfs
from swingbot_worker.readers.boot_reader import read_boot
from swingbot_worker.rootfs.cpio import Entry
from swingbot_worker.testbox.cluster import check, script, wire
from swingbot_worker.testbox.cluster.cluster_verdict import judge
from swingbot_worker.testbox.cluster.files import KEPT, OF_BOTH
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

# Part of the maximum wait for the other testbox; four boot times are added.
WAIT_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Cluster:
    """Boots both testboxes of the cluster `testbox`; `nodes` are their drivers, by role."""

    testbox: Testbox
    how: ClusterDriver
    nodes: Mapping[str, Driver]

    def payload(self, job: Job) -> Payload:
        terms = script.HandshakeTerms(token=secrets.token_hex(8), wait=self._wait)
        read = partial(_part, job.site.jobs / "programs")
        entries = {
            role: script.entries(role, self.how, job.unit_jobs, read, terms) for role in ROLES
        }
        system = rootfs.prepare(job.unit_jobs, job.site)
        return Payload(
            script=_text(entries),
            parts={
                role: Payload(script=b"", entries=entries[role], rootfs=system) for role in ROLES
            },
        )

    @property
    def _wait(self) -> int:
        """Seconds for which a node that is ready waits for the other one."""
        return int(WAIT_SECONDS + 4 * self.testbox.boot_seconds)

    def boot(self, request: Request) -> Boot:
        request.kernel.refuse_lacking(
            self.how.kconfig_needed, f"the wire of cluster {self.testbox.name}"
        )
        with request.lease() as locks:
            endings, spoilt = self._boot_until_valid(request, locks)
        _keep(request.out)
        verdict = judge(
            self.testbox.name,
            (endings[SERVER].ending, endings[CLIENT].ending),
            patient=self._wait >= self.testbox.boot_seconds
            and script.AGAIN_SECONDS >= EXTRA_SECONDS,
        )
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

    def _boot_until_valid(
        self, request: Request, locks: Sequence[int]
    ) -> tuple[Mapping[str, NodeRun], int]:
        """Boot both nodes again until no fault of QEMU invalidates the boot.

        Returns the outcomes by role, and the number of invalid boots.
        """
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
                f"QEMU executed a stale translation on {stale.who}; booting both testboxes again"
            )
        raise AssertionError("unreachable")

    def _node(
        self, role: str, request: Request, locks: Sequence[int], pair: NodePair, work: Path
    ) -> Request:
        """Return the request for one node."""
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
    """Read a file of `jobs/programs`. Raises InfraError if it does not exist."""
    try:
        return (programs / path).read_bytes()
    except FileNotFoundError:
        raise InfraError(
            f"The program {path.partition('/')[0]} does not support clusters: {programs / path} "
            "does not exist."
        ) from None


def _text(entries: Mapping[str, Sequence[Entry]]) -> bytes:
    """Return the files of both nodes as one text, each below a line with its role and path."""
    return b"".join(
        f"# --- {role}: {entry.path}\n".encode() + entry.content
        for role in ROLES
        for entry in entries[role]
    )


def _keep(out: Path) -> None:
    """Move the files of both nodes to `out`, with their names in the outcome."""
    for role in ROLES:
        for name in (*KEPT, *OF_BOTH):
            path = out / role / name
            if path.is_file():
                path.replace(
                    out / (name if role == CLIENT and name not in OF_BOTH else f"{role}.{name}")
                )
        shutil.rmtree(out / role, ignore_errors=True)


def _server_facts(played: NodeRun, out: Path) -> Mapping[str, Fact]:
    """Return all facts of the server, prefixed with `server.`."""
    reported = read_boot(out / f"{SERVER}.results.tar", facts=played.facts).facts
    return {f"{OF_SERVER}{name}": value for name, value in reported.items()}
