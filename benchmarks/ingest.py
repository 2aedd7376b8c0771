"""How fast results become samples, and how fast samples are read, on a PostgreSQL of the
benchmark's own that the code of ingest fills.

    python -m benchmarks.ingest --quick              200 000 samples, a minute
    nice -n 15 python -m benchmarks.ingest           10 000 000 samples
    python -m benchmarks.ingest --samples 1000000 --json FILE
    python -m benchmarks.ingest --keep DIR --samples 3000000 --trees 900 --testboxes 50
    python -m benchmarks.ingest --keep DIR --samples 10000000      goes on from 3 000 000

With --keep the database stays in DIR: a run that was stopped, or asked for less, is continued, and
the queries are timed again.

Three parts: outcomes with recorded output of a benchmark and of all monitors are taken in from the
artifact store, parsing included; then boots are filled in up to the number wanted,
through the same `add_boot` and `add_runs`, without the parsing; then each query that a page,
a panel or the brain asks of samples is timed, first and again, and every query of every dashboard.
The server is the embedded one with its own settings (fsync on, 128 MB of shared buffers),
in a temporary directory. `SWINGBOT_TEST_DB_URL` names another server, whose user may create
databases.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import shutil
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import sqlalchemy as sa

from benchmarks.embedded import a_database
from benchmarks.samples_queries import panels, timed
from benchmarks.samples_world import JOBS, RUNS, TESTBOXES, World, a_world, an_outcome
from swingbot.core.model.outcome import Outcome
from swingbot.service.faults import Faults
from swingbot.service.result.ingest import ingest_outcomes
from swingbot_db.engine import make_engine
from swingbot_db.store import PgTransaction
from swingbot_jobs.reading.result import ParsedRun
from tests import builders as make

QUICK, FULL = 200_000, 10_000_000
PARSED_BOOTS = 20
SLOW_MS = 200
AGAIN, PANELS_AGAIN = 20, 5  # times that a query or page, and a panel, is asked after the first
TABLES = ["sample", "boot_mean", "measured_metric"]  # grow with the samples
BYTES = 160  # of the disk for a sample, with its share of indexes and of the write-ahead log
PROGRAMS = Path(__file__).parents[1] / "jobs" / "programs"

Timed = dict[str, Any]


# --- a server and a lab ---


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


def parsed_part(world: World) -> tuple[Timed | None, dict[str, list[float]]]:
    """Take in real outcomes; the timing (None if a kept database has them), and the samples of one
    run as a pattern for the rest.
    """
    if world.boots >= PARSED_BOOTS:
        return None, _pattern(world.engine)
    files = run_files(world.lab.catalogue.programs)
    stored: Any = world.lab.tools.artifacts  # the port only reads; the adapter stores too
    with world.engine.begin() as conn:
        for boot in range(PARSED_BOOTS):
            content = a_results_tar(files, boot)
            sha256 = hashlib.sha256(content).hexdigest()
            stored.put(io.BytesIO(content), sha256)
            file = {"sha256": sha256, "size": len(content)}
            world.next_boot(conn, partial(an_outcome, results=file))
    clock = Clock(world.engine)
    faults = Faults(world.lab.transaction)
    ingest_outcomes(world.lab, faults)
    faults.tell()
    with world.engine.connect() as conn:
        timing = clock.facts(conn.execute(sa.text("SELECT count(*) FROM sample")).scalar_one())
        bad = conn.execute(
            sa.text("SELECT DISTINCT status, reason FROM run WHERE status <> 'ok'")
        ).all()
        assert not bad, bad
    facts = {"boots": PARSED_BOOTS, "runs": PARSED_BOOTS * len(JOBS) * RUNS, **timing}
    return facts, _pattern(world.engine)


def _pattern(engine: sa.Engine) -> dict[str, list[float]]:
    """The samples of the first run."""
    pattern: dict[str, list[float]] = {}
    with engine.connect() as conn:
        for row in conn.execute(
            sa.text(
                "SELECT m.metric, s.value FROM sample s JOIN measured_metric m"
                " ON m.id = s.measured WHERE s.run = (SELECT min(id) FROM run) ORDER BY 1, s.seq"
            )
        ):
            pattern.setdefault(row.metric, []).append(row.value)
    return pattern


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
            found = tx.orders.by_number([order])[order]
            image = tx.builds.by_key([found.build_key])[found.build_key].image_sha256
            assert image is not None
            boot = tx.boots.add(attempt, found, image, Outcome.read(outcome))
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


def sizes(conn: sa.Connection) -> dict[str, int]:
    """Bytes on disk of TABLES and their indexes, and of everything."""
    found = conn.execute(
        sa.text(
            "SELECT 'table ' || relname, pg_table_size(relid) FROM pg_stat_user_tables"
            " WHERE relname = ANY(:tables)"
            " UNION ALL SELECT 'index ' || indexrelname, pg_relation_size(indexrelid)"
            " FROM pg_stat_user_indexes WHERE relname = ANY(:tables)"
            " UNION ALL SELECT 'database', pg_database_size(current_database())"
        ),
        {"tables": TABLES},
    )
    return {row[0]: int(row[1]) for row in found}


def measure(
    samples: int, trees: int, testboxes: int, keep: Path | None, say: Callable[[str], None]
) -> dict[str, Any]:
    with (
        a_database(keep / "server" if keep else None) as url,
        tempfile.TemporaryDirectory(prefix="swingbot-bench-") as state,
    ):
        engine = make_engine(url)
        try:
            world = a_world(engine, keep / "state" if keep else Path(state), trees, testboxes)
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
            asked = timed(world, "hackbench.throughput", sorted(pattern), AGAIN)
            say("asking what the dashboards ask")
            boards = panels(engine, PANELS_AGAIN)
        finally:
            engine.dispose()
    return {
        "samples": total,
        "trees": len(world.trees),
        "testboxes": len(world.testboxes),
        "commits": len(world.commits),
        "load_average": os.getloadavg(),
        "parsed": parsed,
        "filled": filled,
        "vacuum_seconds": vacuum,
        "bytes": of,
        "queries": asked,
        "panels": boards,
    }


def show(found: Mapping[str, Any]) -> None:
    for name, part in (("taken in with parsing", found["parsed"]), ("filled in", found["filled"])):
        if part is None or not part["boots"]:
            continue
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
    print(f"\n{'query':48} {'rows':>8} " + " ".join(f"{name:>10}" for name in COLUMNS))
    for row in found["queries"]:
        print(f"{row['query']:48} {row['rows']:8} {_figures(row)}")
    slow = [row for row in found["panels"] if row["p95_ms"] >= SLOW_MS]
    print(f"\n{len(slow)} of {len(found['panels'])} queries of dashboards took over {SLOW_MS} ms:")
    for row in slow or found["panels"][:3]:
        print(f"{_figures(row)}  {row['query']}")


COLUMNS = {
    "first": "first_ms",
    "p50": "p50_ms",
    "p95": "p95_ms",
    "CPU p50": "cpu_p50_ms",
    "CPU p95": "cpu_p95_ms",
}


def _figures(row: Timed) -> str:
    return " ".join(
        f"{row[key]:10.1f}" if row[key] is not None else " over 60 s" for key in COLUMNS.values()
    )


def _refuse(parser: argparse.ArgumentParser, given: argparse.Namespace, samples: int) -> None:
    """Exit with a sentence if this cannot be measured here."""
    if given.trees < 1 or given.testboxes < len(TESTBOXES):
        parser.error(f"--trees must be at least 1 and --testboxes at least {len(TESTBOXES)}")
    place = given.keep or Path(tempfile.gettempdir())
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if samples * BYTES > free:
        parser.error(
            f"{samples} samples need about {samples * BYTES / 1e9:.0f} GB, and {place} has"
            f" {free / 1e9:.0f} GB left; ask for fewer with --samples"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} samples")
    parser.add_argument("--samples", type=int, default=None, help=f"default {FULL}")
    parser.add_argument("--keep", type=Path, help="keep the database in this directory, or go on")
    parser.add_argument("--trees", type=int, default=1, help="of a new database, default 1")
    parser.add_argument(
        "--testboxes", type=int, default=2, help="of a new database, at least and by default 2"
    )
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    given = parser.parse_args()
    samples = given.samples if given.samples is not None else QUICK if given.quick else FULL
    _refuse(parser, given, samples)
    found = measure(
        samples,
        given.trees,
        given.testboxes,
        given.keep.resolve() if given.keep else None,
        lambda line: print(line, file=sys.stderr, flush=True),
    )
    show(found)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
