"""Tables of the kernel lists come out as they were published, from boots in the database.

Boots with the published numbers are stored through the ports; judging, the read model, the columns
and each format do the rest.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Final

import pytest
import sqlalchemy as sa
import yaml

from swingbot.adapters.kernel_reader import ChildKernelRecords
from swingbot.app.sheets import printed
from swingbot.core.model.outcome import Outcome
from swingbot.core.model.records import Arm, BootKey, NewComparison
from swingbot.service.faults import Faults
from swingbot.service.table.judge import judge_comparisons
from swingbot_db.store import PgTransaction
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.kernel_diff import FILE, SymbolRecord, object_row, write_record
from swingbot_jobs.reading.result import ParsedRun
from tests.contract.store.world import a_testbox, a_tree, facts_of, sha256
from tests.fakes.memory_lab import MemoryLab

PUBLISHED: Final = yaml.safe_load(
    (Path(__file__).parents[1] / "golden" / "tables.yaml").read_text()
)
WILL_IT_SCALE: Final = UnitJob(
    name="will-it-scale-page_fault1",
    program="will-it-scale",
    params={"test": "page_fault1", "nr_task": "100%"},
    runs=1,
)
OPS: Final = "will-it-scale.per_process_ops"
Samples = Mapping[str, float]  # of one boot


class Table:
    """A table whose boots are in the database; `artifacts` are files of its builds."""

    def __init__(self, conn: sa.Connection, job: UnitJob, testboxes: Sequence[str]) -> None:
        self.conn, self.job, self.testboxes = conn, job, testboxes
        self.tx = PgTransaction(conn)
        self.artifacts: dict[str, bytes] = {}
        self.lab = MemoryLab()
        self.lab.boot_on(a_testbox(name, label="") for name in testboxes)
        self.tree = a_tree(self.tx)
        self.tx.testboxes.sync(
            [(a_testbox(name, label=""), a_testbox(name, label="").to_json()) for name in testboxes]
        )
        self.spec = self.tx.specs.add([job])

    def measure(
        self,
        arms: Sequence[Arm],
        boots: Mapping[tuple[str, int], Sequence[Samples]],
        *,
        against: Sequence[str],
        columns: Sequence[str] = (),
    ) -> str:
        """Store the boots by (testbox, arm) and judge them; the table's id."""
        number = self.tx.comparisons.add(
            NewComparison(
                kind="experiment",
                tree=self.tree.id,
                arms=arms,
                boots=max(map(len, boots.values())),
                parts=[(testbox, self.spec) for testbox in self.testboxes],
                against=against,
                columns=columns,
            )
        )
        for (testbox, arm), values in boots.items():
            for k, samples in enumerate(values):
                self._boot(number, arms[arm], testbox, k, samples)
        self.tx.comparisons.set_status(number, "running")
        lab = replace(self.lab.lab, transaction=lambda name: nullcontext(self.tx))
        faults = Faults(lab.transaction)
        judge_comparisons(lab, faults, lambda: None)
        faults.tell()
        return f"e{number}"

    def kernel(self, number: int, record: bytes | None = None, compiler: str = "gcc") -> int:
        """A kernel that is built; its variant."""
        tree, key = replace(self.tree, compiler=compiler), sha256(number, compiler)
        variant = self.tx.variants.add(tree, facts_of(number), key, "branch")
        order = self.tx.orders.ensure_build(variant, 0)
        image = sha256("image", variant.build_key)
        files = {"bzImage": {"sha256": image, "size": 1}}
        if record is not None:
            digest = hashlib.sha256(record).hexdigest()
            self.artifacts[digest] = record
            files[FILE] = {"sha256": digest, "size": len(record)}
        build = {"build_key": variant.build_key, "image_sha256": image, "cached": False}
        outcome = {
            "kind": "build",
            "status": "built",
            "seconds": 60.0,
            "worker": "builder",
            "files": files,
            "kernel_build": build | {"compiler_version": variant.compiler},
        }
        self.tx.builds.add(self._attempt(order.id, outcome), Outcome.read(outcome))
        self.tx.orders.set_state(order.id, "done")
        return variant.id

    def _attempt(self, order: int, outcome: Mapping[str, Any]) -> int:
        attempt = self.tx.attempts.add(order, 1)
        self.tx.attempts.end(attempt, outcome)
        return attempt

    def _boot(self, number: int, arm: Arm, testbox: str, k: int, samples: Samples) -> None:
        variant = self.tx.variants.get(arm.variant)
        key = BootKey(build_key=variant.build_key, testbox=testbox, spec=self.spec, series="", k=k)
        (order,) = self.tx.orders.ensure_boots([(key, variant)], 10, comparison=number)
        outcome = {
            "kind": "boot",
            "status": "up",
            "seconds": 20.0,
            "facts": {"nr_cpu": 1, "rootfs": "r"},
            "files": {"results.tar": {"sha256": sha256("results", order.id), "size": 1}},
        }
        image = sha256("image", variant.build_key)
        attempt = self._attempt(order.id, outcome)
        boot = self.tx.boots.add(attempt, order, image, Outcome.read(outcome))
        assert boot is not None
        run = ParsedRun(
            unit_job=self.job.name,
            number=0,
            status="ok",
            samples={metric: [value] for metric, value in samples.items()},
        )
        self.tx.runs.add(boot, [run], {self.job.name: sha256("parser")})
        self.tx.orders.set_state(order.id, "done")

    def printed(self, id_: str, form: str) -> str:
        def opened(digest: str) -> BinaryIO:
            if digest not in self.artifacts:
                raise FileNotFoundError(digest)
            return io.BytesIO(self.artifacts[digest])

        return printed(self.conn, id_, form, ChildKernelRecords(opened))

    def csv(self, id_: str, metric: str = OPS) -> list[dict[str, str]]:
        """The rows of a metric."""
        found = csv.DictReader(io.StringIO(self.printed(id_, "csv")))
        return [row for row in found if row["metric"] == metric]


def percent(row: Mapping[str, str]) -> str:
    """The change as mails print it; "" for a reference."""
    return f"{float(row['change_pct']):+.1f}%" if row["change_pct"] else ""


def around(level: float, stderr_pct: float = 0.05, boots: int = 4) -> list[float]:
    """Boots whose mean is `level`, with this standard error of the mean."""
    apart = level * stderr_pct * math.sqrt(boots - 1) / 100
    return [level + apart * (1 if k % 2 else -1) for k in range(boots)]


def arms_of(table: Table, names: Sequence[str]) -> list[Arm]:
    return [
        Arm(name=name, variant=table.kernel(number), axes={"kernel": name})
        for number, name in enumerate(names)
    ]


def levels(metric: str, level: float) -> list[dict[str, float]]:
    return [{metric: value} for value in around(level)]


@pytest.mark.parametrize(
    ("name", "against", "metric", "program"),
    [
        ("prefetch", "above", OPS, "will-it-scale"),
        ("netperf", "first", "netperf.Throughput_Mbps", "netperf"),
    ],
)
def test_all_machines_are_one_table(
    conn: sa.Connection, name: str, against: str, metric: str, program: str
) -> None:
    facts = PUBLISHED[name]
    params = {"test": "page_fault1"} if program == "will-it-scale" else {"test": "UDP_STREAM"}
    job = UnitJob(name=f"{program}-1", program=program, params=params, runs=1)
    table = Table(conn, job, list(facts["levels"]))
    id_ = table.measure(
        arms_of(table, facts["kernels"]),
        {
            (testbox, arm): levels(metric, level)
            for testbox, measured in facts["levels"].items()
            for arm, level in enumerate(measured)
        },
        against=[against],
    )
    for form in ("text", "mail", "changelog"):
        lines = table.printed(id_, form).splitlines()
        (head,) = [at for at, line in enumerate(lines) if line.startswith("  kernel  ")]
        for arm, kernel in enumerate(facts["kernels"], 1):
            row = lines[head + arm].split()
            cells = [
                cell
                for testbox in sorted(facts["levels"])
                for cell in (
                    str(facts["levels"][testbox][arm - 1]),
                    facts["printed"][testbox][arm - 1],
                )
                if cell
            ]
            assert row == [*kernel.split(), *cells], form
    assert {
        (row["testbox"], row["kernel"]): (round(float(row["mean"])), percent(row))
        for row in table.csv(id_, metric)
    } == {
        (testbox, kernel): (level, change or "")
        for testbox, measured in facts["levels"].items()
        for kernel, level, change in zip(
            facts["kernels"], measured, facts["printed"][testbox], strict=True
        )
    }


def test_contention_and_free_blocks_stand_beside_the_levels(conn: sa.Connection) -> None:
    facts = PUBLISHED["zone_lock"]
    table = Table(conn, WILL_IT_SCALE, ["Skylake-2S"])
    boots = {}
    for arm, name in enumerate(facts["kernels"]):
        own = {"perf-profile.lock_slowpath": facts["contention_pct"][arm]}
        for zone, blocks in facts["free_blocks"].get(name, {}).items():
            node, kind = zone.split()
            own |= {
                f"buddyinfo.after.Node.{node}.zone.{kind}.{order}": float(count)
                for order, count in enumerate(blocks)
            }
        boots["Skylake-2S", arm] = [{**one, **own} for one in levels(OPS, facts["levels"][arm])]
    id_ = table.measure(
        arms_of(table, facts["kernels"]),
        boots,
        against=["first"],
        columns=["locks", "buddyinfo"],
    )
    for form in ("text", "mail", "changelog"):
        text = table.printed(id_, form)
        for arm, name in enumerate(facts["kernels"]):
            named = [line for line in text.splitlines() if line.startswith(f"  {name} ")]
            cells = {cell for line in named for cell in line.split()}
            share = f"{facts['contention_pct'][arm]:.2f}"
            assert {str(facts["levels"][arm]), facts["printed"][arm] or share, share} <= cells
        for zones in facts["free_blocks"].values():
            for zone, blocks in zones.items():
                node, kind = zone.split()
                assert ["Node", f"{node},", "zone", kind, *map(str, blocks)] in [
                    one.split() for one in text.splitlines()
                ]
    rows = table.csv(id_)
    assert [round(float(row["mean"])) for row in rows] == facts["levels"]
    assert [percent(row) for row in rows] == [change or "" for change in facts["printed"]]
    assert [float(row["spin % of samples"]) for row in rows] == facts["contention_pct"]


def test_each_compiler_has_its_own_base(conn: sa.Connection) -> None:
    facts = PUBLISHED["compilers"]
    table = Table(conn, WILL_IT_SCALE, list(facts["levels"]))
    arms, boots = [], {}
    for number, compiler in enumerate(facts["names"]):
        for side, kernel in enumerate(("base", "head")):
            axes = {"compiler": compiler, "kernel": kernel}
            variant = table.kernel(side, compiler=compiler)
            arms.append(Arm(name=f"{compiler} {kernel}", variant=variant, axes=axes))
            for testbox, measured in facts["levels"].items():
                boots[testbox, len(arms) - 1] = [
                    {**one, "perf-profile.lock_slowpath": facts["lock_pct"][testbox]}
                    for one in levels(OPS, measured[number][side])
                ]
    id_ = table.measure(arms, boots, against=["pair"], columns=["locks"])
    for form in ("text", "mail", "changelog"):
        lines = [line.split() for line in table.printed(id_, form).splitlines()]
        assert sum(line[:2] == ["kernel", "ops/s"] for line in lines) == 1, "one table"
        for testbox, measured in facts["levels"].items():
            for compiler, (base, head), change in zip(
                facts["names"], measured, facts["printed"][testbox], strict=True
            ):
                rows = [line for line in lines if line[:1] == [compiler]]
                share = str(facts["lock_pct"][testbox])
                assert any({"base", str(base), share} <= set(row) for row in rows)
                assert any({"head", str(head), change, share} <= set(row) for row in rows)
    cells = {
        (row["testbox"], row["kernel"]): (round(float(row["mean"])), percent(row))
        for row in table.csv(id_)
        if float(row["spin % of samples"]) == facts["lock_pct"][row["testbox"]]
    }
    assert cells == {
        (testbox, f"{compiler} {kernel}"): (level, change if kernel == "head" else "")
        for testbox, measured in facts["levels"].items()
        for compiler, sides, change in zip(
            facts["names"], measured, facts["printed"][testbox], strict=True
        )
        for kernel, level in zip(("base", "head"), sides, strict=True)
    }


def a_record(compiler: str, text: int, own: int, symbols: Mapping[str, int]) -> bytes:
    sizes = {"text": own, "data": 1550, "bss": 104}
    functions = [
        SymbolRecord(name=name, size=size, shape=f"{name}{size}", constants="", uses=())
        for name, size in symbols.items()
    ]
    return write_record(
        compiler=compiler,
        flags=[],
        sizes={"text": text, "data": 0, "bss": 0},
        symbols={"t": dict(symbols)},
        objects={"mm/page_alloc.o": object_row(f"{own:064x}", sizes, functions, [])},
    )


def test_sizes_of_objects_and_symbols_are_those_of_size_and_bloat_o_meter(
    conn: sa.Connection,
) -> None:
    facts = PUBLISHED["sizes"]
    table = Table(conn, WILL_IT_SCALE, ["Skylake-2S"])
    arms, boots = [], {}
    for number, compiler in enumerate(facts["names"]):
        for side, kernel in enumerate(("base", "head")):
            symbols = {row[0]: row[1 + side] for row in facts["bloat"] if row[1 + side]}
            record = a_record(
                compiler, facts["vmlinux"][number], facts["object"][number][side], symbols
            )
            axes = {"compiler": compiler, "kernel": kernel}
            variant = table.kernel(side, record, compiler=compiler)
            arms.append(Arm(name=f"{compiler} {kernel}", variant=variant, axes=axes))
            boots["Skylake-2S", len(arms) - 1] = levels(OPS, 1e6 * (1 + side))
    id_ = table.measure(arms, boots, against=["pair"], columns=["size"])
    for form in ("text", "mail", "changelog"):
        text = table.printed(id_, form)
        lines = [line.split() for line in text.splitlines()]
        for compiler, vmlinux, (base, head) in zip(
            facts["names"], facts["vmlinux"], facts["object"], strict=True
        ):
            for kernel in ("base", "head"):
                assert any(
                    line[:2] == [compiler, kernel] and str(vmlinux) in line for line in lines
                )
            assert any(line[:2] == ["mm/page_alloc.o", f"{base}->{head}"] for line in lines)
        assert facts["totals"] in text
        for function, old, new, delta in facts["bloat"]:
            shown = [str(size) if size else "-" for size in (old, new)]
            assert [function, *shown, delta] in lines, function
    assert [(row["kernel"], round(float(row["text"]))) for row in table.csv(id_)] == [
        (f"{compiler} {kernel}", vmlinux)
        for compiler, vmlinux in zip(facts["names"], facts["vmlinux"], strict=True)
        for kernel in ("base", "head")
    ]


def test_counters_of_perf_stat_are_printed_as_perf_prints_them(conn: sa.Connection) -> None:
    facts = PUBLISHED["perf"]
    events = tuple(row[0] for row in facts["before"])
    job = UnitJob(
        name="hackbench-50", program="hackbench", params={"mode": "process"}, runs=1, events=events
    )
    table = Table(conn, job, ["nehalem-2S"])
    boots: dict[tuple[str, int], list[dict[str, float]]] = {}
    for arm, rows in enumerate((facts["before"], facts["after"])):
        found: list[dict[str, float]] = [{"hackbench.throughput": 100.0 + arm} for _ in range(32)]
        for event, value, stderr_pct, _ in rows:
            for samples, counted in zip(found, around(value, stderr_pct, 32), strict=True):
                samples[f"perf-stat.{event}"] = counted
        boots["nehalem-2S", arm] = found
    id_ = table.measure(arms_of(table, ["before", "after"]), boots, against=["first"])
    text = table.printed(id_, "perf")
    parts = text.split(" Performance counter stats for ")[1:]
    assert len(parts) == 2
    for part, rows in zip(parts, (facts["before"], facts["after"]), strict=True):
        assert "(32 runs in 32 boots)" in part
        lines = part.splitlines()
        for event, value, stderr_pct, derived in rows:
            count = f"{value:.6f}" if event == "task-clock" else f"{value:,}"
            words = [count, event]
            if event == "duration_time":
                words = [f"{value / 1e9:.9f}", "seconds", "time", "elapsed"]
            row = next(n for n, line in enumerate(lines) if line.split()[: len(words)] == words)
            shown = next(line for line in lines[row:] if "+-" in line)
            assert f"( +-{stderr_pct:6.2f}% )" in shown, event
            assert not derived or _derived(lines[row]) == derived.split(), event
    for side, rows in enumerate((facts["before"], facts["after"])):
        for event, value, stderr_pct, _ in rows:
            cell = table.csv(id_, f"perf-stat.{event}")[side]
            mean, stddev = float(cell["mean"]), float(cell["stddev"])
            assert mean == pytest.approx(value), event
            assert 100 * stddev / math.sqrt(32) / mean == pytest.approx(stderr_pct), event


def _derived(line: str) -> list[str]:
    """What perf prints after `#`; rates in M/sec, as it did then."""
    number, *words = line.partition("#")[2].partition("( +-")[0].split()
    factor = {"/sec": 1e-6, "K/sec": 1e-3, "G/sec": 1e3}.get(words[0])
    return [number, *words] if factor is None else [f"{float(number) * factor:.3f}", "M/sec"]
