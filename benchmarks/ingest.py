"""How fast results become samples, and how fast samples are read, on a PostgreSQL of the
benchmark's own that the code of ingest fills.

    python -m benchmarks.ingest --quick              200 000 samples, a minute
    nice -n 15 python -m benchmarks.ingest           10 000 000 samples
    python -m benchmarks.ingest --samples 1000000 --json FILE

Three parts: outcomes with recorded output of a benchmark and of all monitors are taken in from the
artifact store, parsing included; then boots are filled in up to the number wanted,
through the same `add_boot` and `add_runs`, without the parsing; then each query that a page,
a panel or the brain asks of samples is timed, first and again.
The server is the embedded one with its own settings (fsync on, 128 MB of shared buffers),
in a temporary directory. `SWINGBOT_TEST_DB_URL` names another server, whose user may create
databases.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import statistics
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import sqlalchemy as sa

from benchmarks.embedded import a_database
from swingbot.app.settings import load
from swingbot.app.wiring import make_lab
from swingbot.service.faults import Faults
from swingbot.service.ports import Lab
from swingbot.service.result.ingest import ingest_outcomes
from swingbot_db import read
from swingbot_db.engine import make_engine
from swingbot_db.migrate import upgrade
from swingbot_db.store import PgTransaction
from swingbot_jobs.reading.result import ParsedRun
from tests import builders as make

QUICK, FULL = 200_000, 10_000_000
PARSED_BOOTS = 20
RUNS = 5  # of a unit job in a boot
JOBS = ("hackbench-pipe-8-process-100%", "hackbench-socket-8-process-100%")
TESTBOXES = ("vm-icount", "vm-tcg")
BOOTS_OF_A_COMMIT = 10  # on both testboxes together
PROGRAMS = Path(__file__).parents[1] / "jobs" / "programs"
SIDE_BOOTS = 10  # of the comparison that is read

Timed = dict[str, Any]


# --- a server and a lab ---


@dataclass
class World:
    """A tree whose commits are measured one after the other on two testboxes."""

    engine: sa.Engine
    lab: Lab
    tree: int
    testboxes: list[make.Testbox]
    commits: list[make.Kernel]
    boots: int = 0

    def next_boot(
        self, conn: sa.Connection, outcome: Callable[[int], Mapping[str, Any]]
    ) -> tuple[int, int, Mapping[str, Any]]:
        """(order, attempt, outcome) of one more boot whose outcome came."""
        number, self.boots = self.boots, self.boots + 1
        commit, k = divmod(number, BOOTS_OF_A_COMMIT)
        if commit == len(self.commits):
            self.commits.append(
                make.a_kernel(conn, self.tree, commit, at=make.START + timedelta(hours=commit))
            )
        order = make.an_order(
            conn,
            self.commits[commit],
            self.testboxes[k % len(self.testboxes)],
            k=k // len(self.testboxes),
            state="running",
        )
        result = outcome(order)
        return order, make.an_attempt(conn, order, outcome=result), result


def a_world(engine: sa.Engine, state: Path) -> World:
    upgrade(engine)
    lab = make_lab(load(environ={"SWINGBOT_PATHS_STATE": str(state)}), engine)
    with engine.begin() as conn:
        tree = make.a_tree(conn)
        testboxes = [
            make.a_testbox(conn, name, unit_job=JOBS[0], also=JOBS[1:], runs=RUNS)
            for name in TESTBOXES
        ]
    return World(engine, lab, tree, testboxes, [])


def an_outcome(order: int, results: Mapping[str, Any] | None = None) -> dict[str, Any]:
    files = {"results.tar": results} if results else {}
    return {
        "version": 1,
        "kind": "boot",
        "order": f"o{order}",
        "attempt": "a0",
        "status": "up",
        "seconds": 60.0,
        "files": files,
        "facts": {"rootfs": "bench"},
    }


class Clock:
    """Wall-clock seconds, and CPU seconds of this process and of its PostgreSQL backend.

    One backend is enough: while one thread makes queries, the pool has one connection.
    """

    def __init__(self, engine: sa.Engine) -> None:
        with engine.connect() as conn:
            self._server = (
                psutil.Process(conn.execute(sa.text("SELECT pg_backend_pid()")).scalar_one())
                if _is_local(engine)
                else None
            )
        self._began, self._used, self._served = (
            time.perf_counter(),
            time.process_time(),
            self._server_seconds(),
        )

    def _server_seconds(self) -> float:
        times = self._server.cpu_times() if self._server else None
        return times.user + times.system if times else 0.0

    def facts(self, samples: int) -> Timed:
        seconds = time.perf_counter() - self._began
        ours, server = time.process_time() - self._used, self._server_seconds() - self._served
        return {
            "samples": samples,
            "seconds": seconds,
            "cpu_seconds": ours,
            "server_cpu_seconds": server if self._server else None,
            "samples_a_minute": 60 * samples / seconds,
            "samples_a_cpu_minute": 60 * samples / (ours + server) if self._server else None,
        }


def _is_local(engine: sa.Engine) -> bool:
    return engine.url.host in (None, "localhost", "127.0.0.1") or "host" in engine.url.query


# --- part 1: from results.tar to rows ---


def run_files(programs: Mapping[str, Any]) -> dict[str, bytes]:
    """What one run leaves: a recorded hackbench, and a recorded output of each monitor that always
    runs.
    """
    files = {
        path.name: path.read_bytes()
        for path in (PROGRAMS / "hackbench" / "samples" / "guest-pipe-2-iterations.raw").iterdir()
    }
    for program in programs.values():
        recorded = PROGRAMS / program.name / "samples" / "guest.raw"
        if (
            program.kind == "monitor"
            and program.when == "always"
            and program.name not in files
            and recorded.exists()
        ):
            files |= (
                {path.name: path.read_bytes() for path in recorded.iterdir()}
                if recorded.is_dir()
                else {program.name: recorded.read_bytes()}
            )
    return files


def a_results_tar(files: Mapping[str, bytes], boot: int) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for job in JOBS:
            for run in range(RUNS):
                for name, content in {
                    **files,
                    "seconds": f"{2 + boot % 7}.{run}\n".encode(),
                }.items():
                    member = tarfile.TarInfo(f"{job}/{run}/{name}")
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
    return out.getvalue()


def parsed_part(world: World) -> tuple[Timed, dict[str, list[float]]]:
    """Take in real outcomes; the timing, and the samples of one run as a pattern for the rest."""
    files = run_files(world.lab.programs)
    stored: Any = world.lab.artifacts  # the port only reads; the adapter stores too
    with world.engine.begin() as conn:
        for boot in range(PARSED_BOOTS):
            content = a_results_tar(files, boot)
            sha256 = hashlib.sha256(content).hexdigest()
            stored.put(io.BytesIO(content), sha256)
            file = {"sha256": sha256, "size": len(content)}
            world.next_boot(conn, partial(an_outcome, results=file))
    clock = Clock(world.engine)
    faults = Faults(world.lab)
    ingest_outcomes(world.lab, faults)
    faults.tell()
    with world.engine.connect() as conn:
        timing = clock.facts(conn.execute(sa.text("SELECT count(*) FROM sample")).scalar_one())
        bad = conn.execute(
            sa.text("SELECT DISTINCT status, reason FROM run WHERE status <> 'ok'")
        ).all()
        assert not bad, bad
        pattern: dict[str, list[float]] = {}
        for row in conn.execute(
            sa.text(
                "SELECT metric, value FROM sample WHERE run = (SELECT min(id) FROM run) ORDER BY"
                " metric, seq"
            )
        ):
            pattern.setdefault(row.metric, []).append(row.value)
    return {"boots": PARSED_BOOTS, "runs": PARSED_BOOTS * len(JOBS) * RUNS, **timing}, pattern


# --- part 2: many rows ---


def filled_part(
    world: World, pattern: Mapping[str, list[float]], samples: int, say: Callable[[str], None]
) -> Timed:
    """Boots up to `samples` samples in all.

    Values move a little from run to run, so that nothing is the same number twice.
    """
    runs = [
        ParsedRun(unit_job=job, number=number, status="ok", seconds=2.5, samples={})
        for job in JOBS
        for number in range(RUNS)
    ]
    a_boot = len(runs) * sum(map(len, pattern.values()))
    wanted = max(0, samples // a_boot - world.boots)
    clock, began = Clock(world.engine), time.perf_counter()
    said = began
    for done in range(wanted):
        with world.engine.begin() as conn:
            order, attempt, outcome = world.next_boot(conn, an_outcome)
            tx = PgTransaction(conn)
            found = tx.orders.get(order)
            assert found is not None
            image = tx.builds.by_key([found.build_key])[found.build_key].image_sha256
            assert image is not None
            boot = tx.boots.add(attempt, found, image, outcome)
            assert boot is not None
            tx.runs.add(
                boot,
                [replace(run, samples=_moved(pattern, world.boots, run.number)) for run in runs],
                {},
            )
            tx.attempts.mark_ingested(attempt)
            tx.orders.set_state(order, "done")
        if time.perf_counter() - said > 5:
            said = time.perf_counter()
            left = (said - began) * (wanted - done - 1) / (done + 1)
            say(
                f"{done + 1} of {wanted} boots,"
                f" {60 * (done + 1) * a_boot / (said - began) / 1e6:.2f} M samples a minute,"
                f" about {left:.0f} s left"
            )
    return {"boots": wanted, **clock.facts(wanted * a_boot)}


def _moved(pattern: Mapping[str, list[float]], boot: int, run: int) -> dict[str, list[float]]:
    factor = 1 + 0.003 * make.spread(boot, run)
    return {metric: [value * factor for value in values] for metric, values in pattern.items()}


# --- part 3: reading ---


def queries(world: World, metric: str) -> dict[str, Callable[[sa.Connection], int]]:
    """Name -> a query that gives its number of rows."""
    chosen = {"tree": "mm-demo", "testbox": TESTBOXES[0], "job": JOBS[0], "metric": metric}
    where = "WHERE tree = :tree AND testbox = :testbox AND unit_job = :job AND metric = :metric"

    def sql(text: str) -> Callable[[sa.Connection], int]:
        return lambda conn: len(conn.execute(sa.text(text), chosen).all())

    with world.engine.begin() as conn:
        boots = SIDE_BOOTS // 2
        compared = make.a_comparison(
            conn,
            world.tree,
            world.commits[0],
            world.commits[-1],
            world.testboxes,
            boots=min(boots, BOOTS_OF_A_COMMIT // len(TESTBOXES)),
        )
    return {
        "panel: metric over commits (v_metric_over_commits)": sql(
            f'SELECT "time", mean, stddev FROM v_metric_over_commits {where} ORDER BY 1'
        ),
        "panel: the same, 30 days of it": sql(
            f'SELECT "time", mean FROM v_metric_over_commits {where} AND "time" > timestamptz'
            " '2026-03-02' - interval '30 days' ORDER BY 1"
        ),
        "panel: every boot of it (v_boot_metrics)": sql(
            f'SELECT "time", mean FROM v_boot_metrics {where} ORDER BY 1'
        ),
        "panel: one commit, all metrics (v_boot_metrics)": sql(
            "SELECT metric, mean FROM v_boot_metrics WHERE tree = :tree AND commit ="
            f" '{world.commits[0].commit}'"
        ),
        "panel: boots of the lab (v_boots)": sql(
            'SELECT * FROM v_boots ORDER BY "time" DESC LIMIT 100'
        ),
        "page: a boot": lambda conn: len(read.boot(conn, "x1")["runs"]),
        "page: samples of a comparison": lambda conn: len(
            read.samples_of_comparison(conn, compared)
        ),
        "raw: samples.csv of a comparison": lambda conn: sum(
            1 for _ in read.samples(conn, f"c{compared}")
        ),
        "page: result roots": lambda conn: len(read.result_children(conn, ("hackbench",))),
        "brain: boots for the noise records of a testbox": lambda conn: len(
            PgTransaction(conn).noise.measured_boots(TESTBOXES[0])
        ),
        "brain: values of a boot": lambda conn: len(PgTransaction(conn).boots.values(1)),
    }


def timed(world: World, metric: str, again: int) -> list[Timed]:
    """First time and the median of the next ones, in ms.

    A query that needs over a minute is given up and has no time.
    """
    table = []
    for name, ask in queries(world, metric).items():
        times, rows = [], 0
        try:
            for _ in range(1 + again):
                with world.engine.connect() as conn:
                    conn.execute(sa.text("SET statement_timeout = '60s'"))
                    began = time.perf_counter()
                    rows = ask(conn)
                    times.append(1000 * (time.perf_counter() - began))
        except sa.exc.OperationalError:
            times = []
        table.append(
            {
                "query": name,
                "rows": rows,
                "first_ms": times[0] if times else None,
                "median_ms": statistics.median(times[1:]) if times else None,
            }
        )
    return table


def sizes(conn: sa.Connection) -> dict[str, int]:
    """Bytes on disk of the table of samples and its indexes, and of everything."""
    found = conn.execute(
        sa.text(
            "SELECT 'table sample', pg_table_size('sample') UNION ALL SELECT 'index ' ||"
            " indexrelname, pg_relation_size(indexrelid)"
            " FROM pg_stat_user_indexes WHERE relname = 'sample' UNION ALL SELECT 'database',"
            " pg_database_size(current_database())"
        )
    )
    return {row[0]: int(row[1]) for row in found}


def measure(samples: int, say: Callable[[str], None]) -> dict[str, Any]:
    with a_database() as url, tempfile.TemporaryDirectory(prefix="swingbot-bench-") as state:
        engine = make_engine(url)
        try:
            world = a_world(engine, Path(state))
            parsed, pattern = parsed_part(world)
            say(
                f"{len(pattern)} metrics, {sum(map(len, pattern.values()))} samples a run;"
                f" taking in {samples} samples"
            )
            filled = filled_part(world, pattern, samples, say)
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
                began = time.perf_counter()
                conn.exec_driver_sql("VACUUM ANALYZE")
                vacuum = time.perf_counter() - began
                of = sizes(conn)
                total = conn.execute(sa.text("SELECT count(*) FROM sample")).scalar_one()
            say("asking")
            asked = timed(world, "hackbench.throughput", 5)
        finally:
            engine.dispose()
    return {
        "samples": total,
        "commits": len(world.commits),
        "parsed": parsed,
        "filled": filled,
        "vacuum_seconds": vacuum,
        "bytes": of,
        "queries": asked,
    }


def show(found: Mapping[str, Any]) -> None:
    for name, part in (("taken in with parsing", found["parsed"]), ("filled in", found["filled"])):
        server, rate = part["server_cpu_seconds"], part["samples_a_cpu_minute"]
        more = (
            ""
            if server is None
            else f" + {server:.1f} s of the server's: {rate / 1e6:.2f} M a minute of CPU"
        )
        print(
            f"{name:22} {part['boots']:6} boots {part['samples']:10} samples in"
            f" {part['seconds']:.1f} s: {part['samples_a_minute'] / 1e6:.2f} M a minute;"
            f" {part['cpu_seconds']:.1f} s of this process's CPU{more}"
        )
    print(
        f"{found['samples']} samples of {found['commits']} commits;"
        f" vacuum and analyze {found['vacuum_seconds']:.1f} s"
    )
    for name, size in found["bytes"].items():
        print(
            f"  {name:28} {size / 1e6:9.1f} MB  {size / max(1, found['samples']):6.1f} bytes a"
            " sample"
        )
    print(f"\n{'query':52} {'rows':>8} {'first ms':>10} {'then ms':>10}")
    for row in found["queries"]:
        first, then = (
            f"{row[key]:.1f}" if row[key] is not None else "over 60 s"
            for key in ("first_ms", "median_ms")
        )
        print(f"{row['query']:52} {row['rows']:8} {first:>10} {then:>10}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} samples")
    parser.add_argument("--samples", type=int, default=None, help=f"default {FULL}")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    given = parser.parse_args()
    samples = given.samples if given.samples is not None else QUICK if given.quick else FULL
    found = measure(samples, lambda line: print(line, file=sys.stderr, flush=True))
    show(found)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
