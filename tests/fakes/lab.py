"""A lab that answers at once and replaces Buildbot and the workers in tests of the decisions.

It takes the dispatches that the brain made, invents outcomes from what a fakelinux commit says of
itself, and puts files into an artifact store. Its samples say that they are simulated.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from swingbot.service.order.worker_requests import WorkerRequests
from swingbot.service.ports.transaction import OpenTransaction
from swingbot_jobs import codec
from swingbot_jobs.contract import facts
from swingbot_jobs.contract.fact_sheet import RUN_AFTER, RUN_BEFORE
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.kernel_diff import FILE, SymbolRecord, object_row, write_record
from tests.fakelinux import START_SPEED


@dataclass(frozen=True, kw_only=True)
class Dispatched:
    """An order that is handed out."""

    dispatch: int
    attempt: int
    order: int
    kind: str
    build_key: str
    k: int
    purpose: str
    testbox: str | None
    commit: str
    layout: int
    kconfig: str
    unit_jobs: Sequence[UnitJob]
    image: str | None


@dataclass(frozen=True)
class Desk:
    """Where orders are handed out and outcomes are taken."""

    begin: OpenTransaction

    def dispatched(self, *states: str) -> list[Dispatched]:
        """Dispatches in `states`, oldest first."""
        with self.begin("desk") as tx:
            found = [
                (one.id, tx.attempts.order_facts(one.attempt))
                for one in sorted(tx.dispatches.open(), key=lambda one: one.id)
                if one.state in states
            ]
        return [
            Dispatched(
                dispatch=number,
                attempt=facts.attempt,
                order=facts.order,
                kind=facts.kind,
                build_key=facts.build_key,
                k=facts.k or 0,
                purpose=facts.purpose,
                testbox=facts.testbox,
                commit=facts.commit,
                layout=facts.layout,
                kconfig=facts.kconfig,
                unit_jobs=[codec.typed(UnitJob, job) for job in facts.unit_jobs],
                image=facts.image_sha256,
            )
            for number, facts in found
            if facts is not None and facts.attempt_state == "running"
        ]

    def deliver(self, attempt: int, outcome: Mapping[str, Any]) -> None:
        """Take the outcome of an attempt, and end its dispatch."""
        WorkerRequests(self.begin).deliver(attempt, outcome)
        self.end_delivered()

    def end_delivered(self) -> None:
        """End the dispatches of attempts that are over, as Buildbot does."""
        with self.begin("desk") as tx:
            for one in tx.dispatches.open():
                stored = tx.attempts.find(one.attempt)
                if stored is not None and stored.state == "ended":
                    tx.dispatches.close(one.id, "success")


class FileStore(Protocol):
    def open(self, sha256: str) -> BinaryIO: ...
    def put(self, stream: BinaryIO, sha256: str) -> bool: ...


def fakelinux_states(repo: Path, mirror: Path) -> Callable[[str], Mapping[str, Any]]:
    """What each commit of `repo` says of itself.

    A file `later` (JSON) adds to it and wins, so that commits can be made that revert without a
    conflict. Commits that swingbot made are in `mirror` alone.
    """
    environment = {**os.environ, "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(mirror / "objects")}

    @cache
    def state(commit: str) -> Mapping[str, Any]:
        def show(name: str) -> Any:
            shown = subprocess.run(
                ["git", "-C", str(repo), "show", f"{commit}:{name}"],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            return json.loads(shown.stdout or "{}")

        return {**show("state.json"), **show("later")}

    return state


# What is in an image. `note` has no effect; `bound` is a speed that only the usual build has;
# `noise` multiplies `FakeLab.wobble`.
_OF_IMAGE = ("speed", "code", "header", "boots", "note", "bound")
_NOISE = "noise"
# What any monitor sees that a job asks for; its run is twice as slow as the others.
PROFILE = (
    b"# Samples: 1K of event 'cycles'\n    30.00%     7.00%  [kernel.kallsyms]  [k] "
    b"native_queued_spin_lock_slowpath\n"
)


@dataclass(kw_only=True)
class FakeLab:
    """Carries out orders of page-fault jobs.

    `infra` names how many attempts in all are lost to the lab before things work;
    `level` is what the testboxes make of everything (another value: they moved),
    `wobble` the relative spread of one boot, always the same for the same boot;
    `steady`: whatever else was ordered before it, so that a test decides alike each time.
    `bound_to`: what makes a build other than the usual one, "layout" (another link order) or
    "kconfig" (a fragment more). `same_code`: the records of all kernels are equal,
    whatever the images do; `blind` testboxes measure the same speed on every kernel. On `dead`
    testboxes nothing boots.
    """

    desk: Desk
    artifacts: FileStore
    state: Callable[[str], Mapping[str, Any]]  # of a commit
    infra: int = 0
    level: float = 1.0
    wobble: float = 0.0
    steady: bool = False
    config: Callable[[Mapping[str, Any]], str] = lambda state: "CONFIG_X=y\n"  # .config of a state
    bound_to: frozenset[str] = frozenset({"layout", "kconfig"})
    same_code: bool = False
    blind: frozenset[str] = frozenset()
    dead: bool = False
    origin: str = "simulated"  # "measured": boots count for the noise of a testbox
    compiled_by: str = ""  # written into every image
    # what an image that does not boot does
    failure: tuple[str, str] = ("panicked", "Kernel panic - not syncing: no init found")
    # factors of speed and of `wobble` under the settings of a job
    under: Callable[[UnitJob], tuple[float, float]] = lambda job: (1.0, 1.0)
    settable: bool = False  # the machine has what jobs demand, and keeps it
    calls: bytes = b"calls\n32768 do_fault\nend\n"  # what function-profile sees
    facts: dict[str, Any] = field(default_factory=lambda: {"qemu_version": "7.2"})
    # (kind, commit, k) of every execution
    done: list[tuple[str, str, int | None]] = field(default_factory=list)

    def work(self) -> int:
        """Carry out everything that is handed out; says how much that was."""
        wanted = self.desk.dispatched("wanted", "placed")
        for order in wanted:
            self.carry_out(order)
        return len(wanted)

    def carry_out(self, order: Dispatched) -> None:
        """Deliver the outcome of a dispatch, and end it."""
        self.desk.deliver(order.attempt, self._outcome(order))

    def _outcome(self, order: Dispatched) -> dict[str, Any]:
        head = {
            "version": 1,
            "kind": order.kind,
            "order": f"o{order.order}",
            "attempt": f"a{order.attempt}",
            "seconds": 1.0,
            "origin": self.origin,
            "files": {},
        }
        if self.infra > 0:
            self.infra -= 1
            return {**head, "status": "infra", "reason": "the disk is full"}
        self.done.append((order.kind, order.commit, order.k))
        return {**head, **(self._build(order) if order.kind == "build" else self._boot(order))}

    def _build(self, order: Dispatched) -> dict[str, Any]:
        state = self.state(order.commit)
        build: dict[str, Any] = {
            "build_key": order.build_key,
            "compiler_version": "fakecc 1.0",
            "cached": False,
        }
        if state["broken"]:
            return {
                "status": "failed",
                "reason": "mm/x.c:1: error: this does not compile",
                "kernel_build": {**build, "errors": ["mm/x.c:1: error: this does not compile"]},
            }
        laid_out: dict[str, Any] = {"layout": order.layout} if order.layout else {}
        laid_out |= {"kconfig": order.kconfig} if "+" in order.kconfig else {}
        laid_out |= {"compiled_by": self.compiled_by} if self.compiled_by else {}
        image = json.dumps(
            {key: state[key] for key in (*_OF_IMAGE, _NOISE) if key in state} | laid_out
        ).encode()
        files = {
            "bzImage": self._store(image),
            FILE: self._store(_record({} if self.same_code else state)),
            "config": self._store(self.config(state).encode()),
        }
        return {
            "status": "built",
            "files": files,
            "kernel_build": {**build, "image_sha256": files["bzImage"]["sha256"]},
        }

    def _boot(self, order: Dispatched) -> dict[str, Any]:
        image = json.loads(self.artifacts.open(order.image or "").read())
        if self.dead:
            return {"status": "hung", "reason": "no word on the console for 60 s"}
        if not image["boots"]:
            return dict(zip(("status", "reason"), self.failure, strict=True))
        speed = (
            image["bound"]
            if "bound" in image and not self.bound_to & image.keys()
            else image["speed"]
        )
        speed = START_SPEED if order.testbox in self.blind else speed
        # the same for all kernels at the same k of a purpose
        number = order.k + (0 if order.purpose == "search" else sum(order.purpose.encode()))
        shift = 1 + 0.002 * ((number * 7919) % 11 - 5)
        faster, noisier = self.under(order.unit_jobs[0])
        wobble = self.wobble * image.get(_NOISE, 1) * noisier
        boot = (order.commit, order.purpose, order.k) if self.steady else (order.order, order.k)
        shift *= faster * self.level * (1 + wobble * _gauss(*boot))
        files: dict[str, bytes] = {}
        slab = 10_000 * START_SPEED / image["speed"] * shift  # kB; slow kernels need more
        seen = {"function-profile": self.calls, "memory-sampler": _slab(slab)}
        runs = []
        for job in order.unit_jobs:
            for number in job.numbers:
                rate = 1000.0 * speed * shift * (1 + 0.0003 * number)
                monitor = job.monitor_of(number)
                files |= run_files(
                    f"{job.name}/{number}",
                    rate / (2 if monitor else 1),
                    int(job.params.get("nr_task", "1")),
                )
                if monitor:
                    files |= {f"{job.name}/{number}/{monitor}": seen.get(monitor, PROFILE)}
                if self.settable:
                    held = _held(job)
                    files |= {f"{job.name}/{number}/{name}": held for name in _AROUND}
                runs.append(
                    {"unit_job": job.name, "number": number, "status": "ok", "seconds": 1.0}
                )
        return {
            "status": "up",
            "facts": {"uname": "6.1.0-fake", **self.facts},
            "runs": runs,
            "files": {
                "results.tar": self._store(tar(files)),
                "console.log": self._store(b"booted\n"),
            },
        }

    def _store(self, content: bytes) -> dict[str, Any]:
        sha256 = hashlib.sha256(content).hexdigest()
        self.artifacts.put(io.BytesIO(content), sha256)
        return {"sha256": sha256, "size": len(content)}


def _record(state: Mapping[str, Any]) -> bytes:
    """The record of a kernel whose one function depends on all that the image does."""
    digest = hashlib.sha256(json.dumps([state.get(key) for key in _OF_IMAGE]).encode()).hexdigest()
    sizes = {"text": 100, "data": 0, "bss": 0}
    function = SymbolRecord(
        name="do_fault", size=100 + state.get("speed", 0), shape=digest, constants="", uses=()
    )
    return write_record(
        compiler="fakecc 1.0",
        flags=[],
        sizes=sizes,
        symbols={},
        objects={"mm/memory.o": object_row(digest, sizes, [function], [])},
    )


def _slab(kilobytes: float) -> bytes:
    """What memory-sampler writes: before the run, and in it."""
    return b"".join(b"time: %d.00\nSlab: %d kB\n" % (at, kilobytes) for at in (1, 2))


_AROUND = (RUN_BEFORE, RUN_AFTER)


def _held(job: UnitJob) -> bytes:
    """The files of the demanded facts that the runner sets, as it reads them back."""
    return "".join(
        f"{file}:{f'[{text}]' if facts.known()[name].form == 'chosen' else text}\n"
        for name, wanted in job.demand.items()
        for file, text in facts.settings({name: wanted})
    ).encode()


def _gauss(*words: object) -> float:
    """A unit Gaussian, near enough, that depends on the words alone: twelve uniform draws less
    six."""
    return (
        sum(
            int.from_bytes(hashlib.sha256(f"{words}:{n}".encode()).digest()[:6], "big") / 2**48
            for n in range(12)
        )
        - 6.0
    )


def run_files(directory: str, rate: float, tasks: int) -> dict[str, bytes]:
    faults = 32768 * tasks
    seconds = faults / tasks / rate
    line = (
        f"page-fault: mode=process tasks={tasks} cycles=1 bytes=134217728 faults={faults}"
        f" seconds={seconds:.9f} faults_per_second={rate * tasks:.2f}\n"
    )
    counters = (
        "1000.00,msec,task-clock,1000000000,100.00,0.990,CPUs"
        " utilized\n120,,context-switches,1000000000,100.00,120.0,/sec\n"
    )
    return {
        f"{directory}/stdout": line.encode(),
        f"{directory}/stderr": b"",
        f"{directory}/perf-stat": counters.encode(),
        f"{directory}/rc": b"0\n",
        f"{directory}/seconds": b"1.0\n",
    }


def tar(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return out.getvalue()
