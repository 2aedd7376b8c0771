"""`make seeds N=20 [PLANT=none] [WORKLOAD=swap]`: the demo with seeds 1..N, one line each.

What is done is not done again.

Results are kept in the cache, one JSON line a seed, in a file named by the tree of this checkout's
sources: another version starts again. Exit status 0 if every seed named the planted commit and no
other.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from swingbot_worker.site import from_environment

CHECKOUT = Path(__file__).resolve().parents[2]


def version() -> str:
    """What the results are results of: the sources as committed, or as they are if that differs."""
    described = subprocess.run(
        ["git", "-C", str(CHECKOUT), "stash", "create"], capture_output=True, text=True
    )
    commit = described.stdout.strip() or "HEAD"
    parts = [f"{commit}:{part}" for part in ("jobs", "master", "workers", "db")]
    trees = subprocess.run(
        ["git", "-C", str(CHECKOUT), "rev-parse", *parts], capture_output=True, text=True
    )
    return "-".join(line[:6] for line in trees.stdout.split()) or "unknown"


def _asked() -> str:
    """The part of a file's name that tells apart what the demo was asked for."""
    return "".join(f"-{os.environ[name]}" for name in ("WORKLOAD", "PLANT") if os.environ.get(name))


def main() -> int:
    wanted, plant = int(sys.argv[1]), os.environ.get("PLANT") or ""
    kept = from_environment().cache / "seeds" / f"{version()}{_asked()}.jsonl"
    kept.parent.mkdir(parents=True, exist_ok=True)
    done: dict[int, dict[str, Any]] = (
        {line["seed"]: line for line in map(json.loads, kept.read_text().splitlines())}
        if kept.exists()
        else {}
    )
    print(
        (
            f"results are kept in {kept}\n"
            f"{'seed':>4} {'plant':8} {'right':6} {'mails':>5} {'seconds':>7} {'built':>5}"
            f" {'boots':>5}"
            "  bisections"
        ),
        flush=True,
    )
    for seed in range(1, wanted + 1):
        if seed not in done:
            done[seed] = run(seed, plant)
            with kept.open("a") as file:
                file.write(json.dumps(done[seed]) + "\n")
        line = done[seed]
        numbers = (
            f"{line.get('mails', '-'):>5} {line.get('seconds', '-'):>7}"
            f" {line.get('built', '-'):>5} {line.get('boots', '-'):>5}"
        )
        print(
            (
                f"{seed:>4} {line.get('plant') or '-':8} {'yes' if line['right'] else 'NO':6}"
                f" {numbers}"
                f"  {' '.join(line.get('bisections', []))}"
            ),
            flush=True,
        )
    wrong = [seed for seed in range(1, wanted + 1) if not done[seed]["right"]]
    print(
        f"{wanted - len(wrong)} passed, {len(wrong)} failed" + (f": seeds {wrong}" if wrong else "")
    )
    return 1 if wrong else 0


def run(seed: int, plant: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="swingbot-seed-") as scratch:
        result = Path(scratch) / "result.json"
        environment = {
            **os.environ,
            "SEED": str(seed),
            "PLANT": plant,
            "DEMO_EXIT": "1",
            "DEMO_RESULT": str(result),
            "DEMO_STATE": f"{scratch}/state",
        }
        log = from_environment().cache / "seeds" / f"seed-{seed}{_asked()}.log"
        with log.open("w") as sink:
            status = subprocess.run(
                [sys.executable, "-m", "tests.demo.demo"],
                cwd=CHECKOUT,
                env=environment,
                stdout=sink,
                stderr=subprocess.STDOUT,
            ).returncode
        if result.exists():
            found: dict[str, Any] = json.loads(result.read_text())
            return found
        print(f"seed {seed}: the demo ended with status {status}; see {log}", file=sys.stderr)
        return {"seed": seed, "plant": plant, "right": False}


if __name__ == "__main__":
    sys.exit(main())
