"""What contract tests and tests of use cases begin with, made through the ports alone."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final, Protocol

from sqlalchemy.exc import IntegrityError

from swingbot.core.model.bisection import BisectionTerms
from swingbot.core.model.comparison_row import ComparisonRow, Side
from swingbot.core.model.outcome import Outcome
from swingbot.core.model.records import (
    BootKey,
    CommitFacts,
    JobFile,
    NewBisection,
    NewComparison,
    NewSwing,
    Order,
    Tree,
    Variant,
    base_and_head,
)
from swingbot.service.ports import Transaction
from swingbot.service.ports.dispatches import DispatchResult
from swingbot_jobs.contract.orders import SEARCH
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.reading.result import ParsedRun
from swingbot_jobs.testbox.definition import Testbox
from swingbot_jobs.testbox.file import load_all
from tests.fakes.store import Refused

REFUSED: Final = (Refused, IntegrityError)
UNIT_JOB: Final = "page-fault-1"
METRIC: Final = "page-fault.per_process_ops"
TESTBOX: Final = "box"


class Store(Protocol):
    """A store whose clock can be moved."""

    def transaction(self, name: str = "test") -> AbstractContextManager[Transaction]: ...

    def pass_time(self, seconds: float) -> None: ...


def end_dispatch(tx: Transaction, attempt: int, result: DispatchResult) -> None:
    """Buildbot is done with the open dispatch of an attempt."""
    (dispatch,) = (one for one in tx.dispatches.open() if one.attempt == attempt)
    tx.dispatches.close(dispatch.id, result)


def send(tx: Transaction, report: int) -> None:
    """The mail of a report leaves."""
    mail = tx.outbox.lock(report)
    assert mail is not None
    now = datetime.fromtimestamp(tx.attempts.clock(), UTC)
    tx.outbox.update(dataclasses.replace(mail, state="sent", sent_at=now))


def commit(number: int) -> str:
    return f"{number + 1:040x}"


def sha256(*words: object) -> str:
    return hashlib.sha256(repr(words).encode()).hexdigest()


def facts_of(number: int) -> CommitFacts:
    return CommitFacts(
        commit=commit(number),
        tree_hash=f"{number + 1:040x}",
        parents=(commit(number - 1),) if number else (),
        subject=f"commit {number}",
        author="A Developer <dev@example.org>",
    )


def a_tree(tx: Transaction, name: str = "demo") -> Tree:
    return tx.trees.add(
        Tree(
            id=0,
            name=name,
            url="file:///demo.git",
            branch="main",
            base_commit=commit(0),
            tip_commit=None,
            job_files=(JobFile(name="a.yaml", text="x: 1\n"),),
            testboxes=(TESTBOX,),
            paths=("mm/*",),
            kconfig="vm-x86_64",
            compiler="gcc",
        )
    )


def a_variant(tx: Transaction, tree: Tree, number: int, **more: Any) -> Variant:
    key = sha256(number, *more.values())
    return tx.variants.add(tree, facts_of(number), key, more.pop("origin", "branch"), **more)


@cache
def _vm() -> Testbox:
    return load_all(Path(__file__).parents[3] / "workers" / "testboxes")["vm-icount"]


def a_testbox(name: str = TESTBOX, **more: Any) -> Testbox:
    return dataclasses.replace(_vm(), name=name, **more)


def add_testboxes(tx: Transaction, *names: str) -> None:
    tx.testboxes.sync(
        [(a_testbox(name), a_testbox(name).to_json()) for name in names or (TESTBOX,)]
    )


def a_job(name: str = UNIT_JOB, program: str = "page-fault") -> UnitJob:
    return UnitJob(name=name, program=program, params={"nr_task": "1"}, runs=2)


def a_spec(tx: Transaction, *names: str) -> str:
    return tx.specs.add([a_job(name) for name in names or (UNIT_JOB,)])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lab:
    """A tree with `kernels` variants, a testbox, a spec."""

    tree: Tree
    kernels: Sequence[Variant]
    spec: str

    @property
    def parts(self) -> list[tuple[str, str]]:
        return [(TESTBOX, self.spec)]


def a_lab(tx: Transaction, kernels: int = 2, testboxes: Sequence[str] = (TESTBOX,)) -> Lab:
    tree = a_tree(tx)
    add_testboxes(tx, *testboxes)
    return Lab(
        tree=tree,
        kernels=[a_variant(tx, tree, number) for number in range(kernels)],
        spec=a_spec(tx),
    )


def a_comparison(tx: Transaction, lab: Lab, **more: Any) -> int:
    base, head = more.pop("base", lab.kernels[0].id), more.pop("head", lab.kernels[1].id)
    asked: dict[str, Any] = {
        "kind": "asked",
        "tree": lab.tree.id,
        "arms": base_and_head(base, head),
        "boots": 3,
        "parts": lab.parts,
    }
    return tx.comparisons.add(NewComparison(**{**asked, **more}))


def a_row(unit_job: str = UNIT_JOB, metric: str = METRIC, pct: float = -18.0) -> ComparisonRow:
    """100.0 on one side, `pct` per cent more on the other."""
    return ComparisonRow(
        testbox=TESTBOX,
        unit_job=unit_job,
        metric=metric,
        better="higher",
        base=Side(boots=3, runs=6, mean=100.0, stddev=1.0),
        head=Side(boots=3, runs=6, mean=100.0 + pct, stddev=1.0),
        change_pct=pct,
        interval_pct=(pct - 1.0, pct + 1.0),
        verdict="worse" if pct < 0 else "better",
    )


def new_swing(comparison: int, **more: Any) -> NewSwing:
    given: dict[str, Any] = {
        "testbox": TESTBOX,
        "unit_job": UNIT_JOB,
        "metric": METRIC,
        "direction": "worse",
        "change_pct": -18.0,
        "state": "suspected",
        "source": "base",
        "reason": "-18 %",
    }
    return NewSwing(comparison=comparison, **{**given, **more})


def a_bisection(tx: Transaction, lab: Lab, **more: Any) -> int:
    asked: dict[str, Any] = {
        "tree": lab.tree.id,
        "origin": "watch",
        "good": lab.kernels[0].commit,
        "bad": lab.kernels[-1].commit,
        "testbox": TESTBOX,
        "spec": lab.spec,
        "series": None,
        "unit_job": UNIT_JOB,
        "metric": METRIC,
        "terms": BisectionTerms(unit="ops/s", better="higher", max_boots=40),
        "points": [(variant, 1.0) for variant in lab.kernels],
        "request_key": "b",
    }
    return tx.bisections.add(NewBisection(**{**asked, **more}))


def boot_key(
    lab: Lab, kernel: int = 0, k: int = 0, series: str = "", purpose: str = SEARCH
) -> BootKey:
    return BootKey(
        build_key=lab.kernels[kernel].build_key,
        testbox=TESTBOX,
        spec=lab.spec,
        series=series,
        k=k,
        purpose=purpose,
    )


def a_boot_order(
    tx: Transaction,
    lab: Lab,
    kernel: int = 0,
    k: int = 0,
    series: str = "",
    priority: int = 10,
    purpose: str = SEARCH,
) -> Order:
    boot = boot_key(lab, kernel, k, series, purpose), lab.kernels[kernel]
    return tx.orders.ensure_boots([boot], priority)[0]


def a_build(store: Store, lab: Lab, kernel: int = 0, **more: Any) -> str:
    """A kernel that is built; its image."""
    variant, image = lab.kernels[kernel], sha256("image", kernel)
    with store.transaction() as tx:
        order = tx.orders.ensure_build(variant, 0)
        attempt = tx.attempts.add(order.id, tx.attempts.made(order.id)[0] + 1)
        outcome = {
            "kind": "build",
            "status": "built",
            "seconds": 60.0,
            "worker": "builder",
            "files": {"bzImage": {"sha256": image, "size": 1}},
            "kernel_build": {
                "build_key": variant.build_key,
                "image_sha256": image,
                "compiler_version": "gcc 12",
                "cached": False,
            },
        } | more
        tx.attempts.end(attempt, outcome)
        tx.builds.add(attempt, Outcome.read(outcome))
        tx.orders.set_state(order.id, "done")
    return image


def a_boot(
    store: Store,
    lab: Lab,
    kernel: int = 0,
    k: int = 0,
    series: str = "",
    values: Sequence[float] = (100.0, 102.0),
    purpose: str = SEARCH,
    **more: Any,
) -> int:
    """A boot of a kernel that is built; `values` are one a run."""
    with store.transaction() as tx:
        order = a_boot_order(tx, lab, kernel, k, series, purpose=purpose)
        attempt = tx.attempts.add(order.id, tx.attempts.made(order.id)[0] + 1)
        outcome = {
            "kind": "boot",
            "status": "up",
            "seconds": 20.0,
            "facts": {"nr_cpu": 1, "rootfs": "r"},
            "files": {"results.tar": {"sha256": sha256("results", order.id), "size": 1}},
        } | more
        tx.attempts.end(attempt, outcome)
        boot = tx.boots.add(attempt, order, sha256("image", kernel), Outcome.read(outcome))
        assert boot is not None
        runs = [
            ParsedRun(unit_job=UNIT_JOB, number=number, status="ok", samples={METRIC: [value]})
            for number, value in enumerate(values)
        ]
        tx.runs.add(boot, runs, {UNIT_JOB: sha256("parser")})
        tx.orders.set_state(order.id, "done")
    return boot
