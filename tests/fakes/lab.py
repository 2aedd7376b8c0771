"""A lab that answers at once and replaces Buildbot and the workers in tests of the decisions.

It takes the dispatches that the brain made, invents outcomes from what a fakelinux commit says of
itself, puts files into the real artifact store and delivers through the real database functions.
Its samples say that they are simulated.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from swingbot.adapters.artifacts import ArtifactDirectory
from swingbot_db.attempts import AttemptTransactions
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.kernel_diff import FILE, SymbolRecord, object_row, write_record
from tests.fakelinux import START_SPEED

_WANTED = """SELECT d.id AS dispatch, a.id AS attempt, a.number AS attempt_number,
  o.id AS order_id, o.kind, o.build_key, o.k, o.purpose, o.testbox, o.priority,
  v.commit, v.layout, v.kconfig, s.unit_jobs, b.image_sha256
  FROM dispatch d JOIN attempt a ON a.id = d.attempt JOIN orders o ON o.id = a.order_id
  JOIN variant v ON v.id = o.variant
  LEFT JOIN boot_spec s ON s.sha256 = o.spec LEFT JOIN kernel_build b ON b.build_key = o.build_key
  WHERE d.state = ANY(:states) AND a.state = 'running' ORDER BY d.id"""


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
    """Carries out orders of page-fault jobs on fakelinux kernels in `repo`.

    `infra` names how many attempts in all are lost to the lab before things work;
    `level` is what the testboxes make of everything (another value: they moved),
    `wobble` the relative spread of one boot, always the same for the same boot;
    `steady`: whatever else was ordered before it, so that a test decides alike each time.
    `bound_to`: what makes a build other than the usual one, "layout" (another link order) or
    "kconfig" (a fragment more). `same_code`: the records of all kernels are equal,
    whatever the images do; `blind` testboxes measure the same speed on every kernel.
    """

    engine: sa.Engine
    artifacts: Path
    repo: Path
    infra: int = 0
    level: float = 1.0
    wobble: float = 0.0
    steady: bool = False
    bound_to: frozenset[str] = frozenset({"layout", "kconfig"})
    same_code: bool = False
    blind: frozenset[str] = frozenset()
    compiled_by: str = ""  # written into every image
    # what an image that does not boot does
    failure: tuple[str, str] = ("panicked", "Kernel panic - not syncing: no init found")
    calls: bytes = b"calls\n32768 do_fault\nend\n"  # what function-profile sees
    facts: dict[str, Any] = field(default_factory=lambda: {"qemu_version": "7.2"})
    # (kind, commit, k) of every execution
    done: list[tuple[str, str, int | None]] = field(default_factory=list)

    def work(self) -> int:
        """Carry out everything that is handed out; says how much that was."""
        wanted = self.dispatched("wanted", "placed")
        for row in wanted:
            self.carry_out(row)
        return len(wanted)

    def dispatched(self, *states: str) -> Sequence[sa.Row[Any]]:
        """Dispatches in `states`, oldest first."""
        with self.engine.connect() as conn:
            return conn.execute(sa.text(_WANTED), {"states": list(states)}).all()

    def end_delivered(self) -> None:
        """End the dispatches that a lab which died after the delivery left behind."""
        with self.engine.begin() as conn:
            conn.execute(
                sa.text(
                    "UPDATE dispatch d SET state = 'over', result = 'success', ended_at = now()"
                    " FROM attempt a WHERE a.id = d.attempt AND a.state = 'ended'"
                    " AND d.state <> 'over'"
                )
            )

    def carry_out(self, row: sa.Row[Any]) -> None:
        """Deliver the outcome of a dispatch, and end it."""
        AttemptTransactions(self.engine).deliver(row.attempt, self._outcome(row))
        with self.engine.begin() as conn:
            conn.execute(
                sa.text(
                    "UPDATE dispatch SET state = 'over', result = 'success',"
                    " ended_at = now() WHERE id = :id"
                ),
                {"id": row.dispatch},
            )

    def _outcome(self, row: Any) -> dict[str, Any]:
        head = {
            "version": 1,
            "kind": row.kind,
            "order": f"o{row.order_id}",
            "attempt": f"a{row.attempt}",
            "seconds": 1.0,
            "origin": "simulated",
            "files": {},
        }
        if self.infra > 0:
            self.infra -= 1
            return {**head, "status": "infra", "reason": "the disk is full"}
        self.done.append((row.kind, row.commit, row.k))
        return {**head, **(self._build(row) if row.kind == "build" else self._boot(row))}

    def _state(self, commit: str) -> dict[str, Any]:
        """What a commit says of itself.

        A file `later` (JSON) adds to it and wins, so that commits can be made that revert without a
        conflict.
        """
        # commits that swingbot made are there alone
        mirror = {
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(
                self.artifacts.parent / "mirror.git" / "objects"
            )
        }

        def show(name: str) -> bytes:
            return subprocess.run(
                ["git", "-C", str(self.repo), "show", f"{commit}:{name}"],
                env={**os.environ, **mirror},
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            ).stdout

        found: dict[str, Any] = json.loads(show("state.json"))
        later = show("later")
        return found | (json.loads(later) if later else {})

    def _build(self, row: Any) -> dict[str, Any]:
        state = self._state(row.commit)
        build: dict[str, Any] = {
            "build_key": row.build_key,
            "compiler_version": "fakecc 1.0",
            "cached": False,
        }
        if state["broken"]:
            return {
                "status": "failed",
                "reason": "mm/x.c:1: error: this does not compile",
                "kernel_build": {**build, "errors": ["mm/x.c:1: error: this does not compile"]},
            }
        laid_out: dict[str, Any] = {"layout": row.layout} if row.layout else {}
        laid_out |= {"kconfig": row.kconfig} if "+" in row.kconfig else {}
        laid_out |= {"compiled_by": self.compiled_by} if self.compiled_by else {}
        image = json.dumps(
            {key: state[key] for key in (*_OF_IMAGE, _NOISE) if key in state} | laid_out
        ).encode()
        files = {
            "bzImage": self._store(image),
            FILE: self._store(_record({} if self.same_code else state)),
        }
        return {
            "status": "built",
            "files": files,
            "kernel_build": {**build, "image_sha256": files["bzImage"]["sha256"]},
        }

    def _boot(self, row: Any) -> dict[str, Any]:
        image = json.loads(ArtifactDirectory(self.artifacts).open(row.image_sha256).read())
        if not image["boots"]:
            return dict(zip(("status", "reason"), self.failure, strict=True))
        speed = (
            image["bound"]
            if "bound" in image and not self.bound_to & image.keys()
            else image["speed"]
        )
        speed = START_SPEED if row.testbox in self.blind else speed
        # the same for all kernels at the same k of a purpose
        number = row.k + (0 if row.purpose == "search" else sum(row.purpose.encode()))
        shift = 1 + 0.002 * ((number * 7919) % 11 - 5)
        wobble = self.wobble * image.get(_NOISE, 1)
        boot = (row.commit, row.purpose, row.k) if self.steady else (row.order_id, row.k)
        shift *= self.level * (1 + wobble * _gauss(*boot))
        files: dict[str, bytes] = {}
        runs = []
        for job in row.unit_jobs:
            for number in UnitJob.from_json(job).numbers:
                rate = 1000.0 * speed * shift * (1 + 0.0003 * number)
                monitor = UnitJob.from_json(job).monitor_of(number)
                files |= run_files(
                    f"{job['name']}/{number}",
                    rate / (2 if monitor else 1),
                    int(job["params"].get("nr_task", "1")),
                )
                files |= (
                    {
                        f"{job['name']}/{number}/{monitor}": self.calls
                        if monitor == "function-profile"
                        else PROFILE
                    }
                    if monitor
                    else {}
                )
                runs.append(
                    {"unit_job": job["name"], "number": number, "status": "ok", "seconds": 1.0}
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
        ArtifactDirectory(self.artifacts).put(io.BytesIO(content), sha256)
        return {"sha256": sha256, "size": len(content)}


def _record(state: dict[str, Any]) -> bytes:
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
