"""How the loop behaves with a large fleet: the real loop with its own wiring, store and a real
PostgreSQL, and executors that are only played.

    python -m benchmarks.fleet --quick                                 two minutes, 60 testboxes
    nice python -m benchmarks.fleet --minutes 10 --json FILE           1000 testboxes
    python -m benchmarks.fleet --testboxes 300 --workers 60 --trees 300 --minutes 5

Branches move, kernels are ordered, testboxes boot, outcomes come in through the exchange's database
functions and are parsed, swings are proven and bisected, and people ask for comparisons. Played are
the workers (they wait instead of working, and make up what testboxes print) and Buildbot's master
(another process takes what is dispatched).

The figures: how long rounds of the loop take and which steps, how many statements they need, how
long a free testbox waits for its next order, how fairly orders wait, and the size of it all.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil
import sqlalchemy as sa

from benchmarks.embedded import a_database
from benchmarks.fleet_rounds import RoundClock, percentiles
from benchmarks.fleet_waits import waits
from benchmarks.fleet_world import (
    Size,
    make_repository,
    move_branch,
    register,
    worker_names,
    write_workers,
)
from swingbot.app import loop
from swingbot.app.settings import load
from swingbot.app.wiring import make_lab, sync_testboxes
from swingbot_db.engine import make_engine
from swingbot_db.migrate import upgrade
from tests.fakes.mail import brain_environment

FULL = Size(
    testboxes=1000,
    workers=200,
    trees=900,
    boot_seconds=120.0,
    build_seconds=90.0,
    testboxes_of_a_tree=4,
    regressions=0.05,
    load=0.9,
    seconds=600.0,
    poll_seconds=60.0,
    askers=12,
)
QUICK = dataclasses.replace(
    FULL,
    testboxes=60,
    workers=12,
    trees=50,
    boot_seconds=10.0,
    build_seconds=5.0,
    seconds=90.0,
    poll_seconds=10.0,
)
Say = Callable[[str], None]


def measure(size: Size, say: Say, keep_log: Path | None = None) -> dict[str, Any]:
    """Play a fleet of `size` for `size.seconds` and return all figures."""
    with a_database() as url, tempfile.TemporaryDirectory(prefix="swingbot-fleet-") as place:
        root = Path(place)
        environ = _environment(root, url, size)
        write_workers(root / "workers", size)
        repository = root / "linux.git"
        say("making the repository and the testboxes")
        tips = make_repository(repository, size)
        settings = load(environ=environ)
        engine = make_engine(url)
        try:
            upgrade(engine)
            lab = make_lab(settings, engine)
            sync_testboxes(lab)
            register(lab, engine, settings.mirror, repository, size)
            for number in range(size.first_moves):
                move_branch(repository, tips, number)
            clock = RoundClock(engine, lab.transaction)
            lab = dataclasses.replace(lab, transaction=clock.transaction)
            given = {
                "size": dataclasses.asdict(size),
                "environ": environ,
                "repository": str(repository),
                "tips": tips,
                "moved": size.first_moves,
                "answer": str(root / "answer.json"),
            }
            (root / "player.json").write_text(json.dumps(given))
            began, until = time.monotonic(), time.monotonic() + size.seconds
            before = _used(engine)
            with (keep_log or root / "log").open("w") as log:
                player = subprocess.Popen(
                    [sys.executable, "-m", "benchmarks.fleet_player", str(root / "player.json")],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                )
                threading.Thread(target=_follow, args=(player, began, clock, say)).start()
                loop.run(settings, engine, lab, until=lambda: time.monotonic() >= until)
            lasted, after = time.monotonic() - began, _used(engine)
            assert player.stdin is not None
            player.stdin.close()
            if player.wait(120) != 0:
                raise SystemExit(f"the player failed: {(keep_log or root / 'log').read_text()}")
            answer = json.loads((root / "answer.json").read_text())
            with engine.connect() as conn:
                return {
                    "size": dataclasses.asdict(size),
                    "seconds": lasted,
                    "load_average": os.getloadavg(),
                    "cores": os.cpu_count(),
                    "cpu_seconds": {key: after[key] - before[key] for key in before}
                    | {"player": answer["cpu_seconds"]},
                    "loop_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                    "player": answer,
                    "rounds": clock.facts(),
                    **waits(conn, size, answer, clock),
                    **_database(conn),
                }
        finally:
            engine.dispose()


def _environment(root: Path, url: str, size: Size) -> dict[str, str]:
    return brain_environment(root / "state", url) | {
        "SWINGBOT_PATHS_WORKERS": str(root / "workers"),
        "SWINGBOT_BUILD_WORKERS": ",".join(worker_names(size)),
        "SWINGBOT_WATCH_TESTBOX": "rack0000",
        "SWINGBOT_WATCH_POLL_SECONDS": str(size.poll_seconds),
    }


def _follow(player: subprocess.Popen[str], began: float, clock: RoundClock, say: Say) -> None:
    """Print what the player counts, with the last rounds."""
    assert player.stdout is not None
    for line in player.stdout:
        now = json.loads(line)
        last, busy = (
            percentiles([getattr(one, name) for one in clock.rounds[-50:]])
            for name in ("seconds", "busy_seconds")
        )
        say(
            f"{time.monotonic() - began:5.0f} s: {now['busy']} testboxes busy,"
            f" {now['starved']} free with an order ready, {now['ready']} orders ready,"
            f" {now['waiting']} waiting, {now['building']} building; done: {now['build']} builds,"
            f" {now['boot']} boots; {len(clock.rounds)} rounds, the last p50 {last['p50']:.2f} s,"
            f" max {last['max']:.2f} s, processor p50 {busy['p50']:.2f} s"
        )


def _used(engine: sa.Engine) -> dict[str, float]:
    """Processor seconds so far: of this process, of its children, and of all PostgreSQL servers
    that this process's one belongs to.
    """
    own = time.process_time()
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    children = ended.ru_utime + ended.ru_stime
    with engine.connect() as conn:
        backend = conn.execute(sa.text("SELECT pg_backend_pid()")).scalar_one()
    server = 0.0
    try:
        postmaster = psutil.Process(backend).parent()
        for process in [postmaster, *postmaster.children()] if postmaster else []:
            times = process.cpu_times()
            server += times.user + times.system + times.children_user + times.children_system
    except psutil.Error:
        pass  # a server on another host
    return {"loop": own, "programs of the loop (git)": children, "PostgreSQL": server}


def _database(conn: sa.Connection) -> dict[str, Any]:
    tables = conn.execute(
        sa.text(
            "SELECT relname, pg_total_relation_size(relid) AS bytes, n_live_tup AS rows"
            " FROM pg_stat_user_tables ORDER BY 2 DESC LIMIT 12"
        )
    )
    return {
        "database_bytes": conn.execute(
            sa.text("SELECT pg_database_size(current_database())")
        ).scalar_one(),
        "tables": [dict(row._mapping) for row in tables],
        "connections": conn.execute(
            sa.text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        ).scalar_one(),
    }


def show(found: Mapping[str, Any]) -> None:
    size, rounds, cpu = found["size"], found["rounds"], found["cpu_seconds"]
    print(
        f"{size['testboxes']} testboxes, {size['workers']} build workers, {size['trees']} trees;"
        f" {found['seconds']:.0f} s; load {found['load_average'][0]:.1f} on {found['cores']} cores"
    )
    done = found["player"]["done"]
    print(
        f"{done['build']} builds, {done['boot']} boots, {found['player']['moved']} moves;"
        f" the player was at most {found['player']['late_seconds']:.1f} s late"
    )
    print("processor: " + ", ".join(f"{name} {value:.0f} s" for name, value in cpu.items()))
    print(f"loop: {found['loop_memory_mb']:.0f} MB; {found['connections']} connections")
    print(f"database: {found['database_bytes'] / 1e6:.0f} MB")
    print(
        f"\n{'step':34} {'p50 ms':>9} {'p95 ms':>9} {'max ms':>9} {'share %':>8} {'statements':>11}"
    )
    for name, row in rounds["steps"].items():
        print(
            f"{name:34} {1000 * row['p50']:9.1f} {1000 * row['p95']:9.1f} {1000 * row['max']:9.1f}"
            f" {100 * row['share']:8.1f} {row['statements']:11.1f}"
        )
    for name in ("round", *(name for name in rounds if "," in name), "between rounds"):
        row = rounds[name]
        print(
            f"{name:34} {1000 * row['p50']:9.1f} {1000 * row['p95']:9.1f} {1000 * row['max']:9.1f}"
        )
    print(f"{rounds['count']} rounds")
    print(f"\n{'wait':34} {'n':>7} {'p50 s':>8} {'p95 s':>8} {'max s':>8}")
    for name, row in found["waits"].items():
        print(f"{name:34} {row['n']:7} {row['p50']:8.2f} {row['p95']:8.2f} {row['max']:8.2f}")
    for name, value in found["service"].items():
        print(f"{name}: {value}")


def _size(given: argparse.Namespace) -> Size:
    start = QUICK if given.quick else FULL
    named = {
        name: value
        for name in ("testboxes", "workers", "trees", "boot_seconds", "build_seconds", "load")
        if (value := getattr(given, name)) is not None
    }
    if given.minutes is not None:
        named["seconds"] = 60.0 * given.minutes
    return dataclasses.replace(start, **named)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="60 testboxes for 90 s")
    parser.add_argument("--testboxes", type=int, help=f"default {FULL.testboxes}")
    parser.add_argument("--workers", type=int, help=f"build workers, default {FULL.workers}")
    parser.add_argument("--trees", type=int, help=f"default {FULL.trees}")
    parser.add_argument("--minutes", type=float, help=f"default {FULL.seconds / 60:.0f}")
    parser.add_argument(
        "--boot-seconds", type=float, help=f"mean of a boot, default {FULL.boot_seconds:.0f}"
    )
    parser.add_argument(
        "--build-seconds", type=float, help=f"mean of a build, default {FULL.build_seconds:.0f}"
    )
    parser.add_argument(
        "--load", type=float, help=f"share of the testboxes' time, default {FULL.load}"
    )
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--log", type=Path, help="keep what the player prints on stderr")
    given = parser.parse_args()
    found = measure(_size(given), lambda line: print(line, file=sys.stderr, flush=True), given.log)
    show(found)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
