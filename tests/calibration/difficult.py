"""The table "Difficult worlds" of docs/calibration-results.md, and the figures of `known.json`.

    # what is idle of the machine, for as long as it takes; stop it and call it again at will
    python -m tests.calibration.difficult --worlds 300
    # write what there is
    python -m tests.calibration.difficult --minutes 0 --write

Each bisection that has ended is a line of `build/difficult-ENGINE.jsonl`, where ENGINE is the hash
of the engine, the families and the simulated worlds: another engine begins anew.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import multiprocessing
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import IO, Any, Final

from tests.calibration import results
from tests.calibration.families import DIFFICULT, FAMILIES, Family
from tests.calibration.known import figures, known, mended, write
from tests.calibration.score import Verdict, claims, judge, kinds, too_sure

ROOT: Final = Path(__file__).parents[2]
TITLE: Final = "Difficult worlds"
# neither those of `make calibrate` (from 1) nor those of the table of all families (from 1000)
FIRST_SEED: Final = 2000
_SOURCES: Final = (
    "master/swingbot/core/bisect",
    "master/swingbot/core/stats",
    "master/swingbot/core/thresholds.py",
    "tests/calibration/families.py",
    "tests/calibration/score.py",
    "tests/simulate.py",
    "tests/worlds.py",
)

Job = tuple[str, int]  # family, seed
Done = dict[Job, tuple[Verdict, float]]  # and how long it took, seconds of a process


def engine(root: Path = ROOT) -> str:
    """Twelve hexadecimal digits of all code that a verdict depends on, without its words."""
    digest = hashlib.sha256()
    for name in _SOURCES:
        top = root / name
        for path in sorted(top.rglob("*.py")) if top.is_dir() else [top]:
            digest.update(f"{path.relative_to(root)}\n{_code(path.read_text())}".encode())
    return digest.hexdigest()[:12]


def _code(text: str) -> str:
    """Without comments, layout and docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node, clean=False
        ):
            node.body = node.body[1:]
    return ast.dump(tree)


def load(path: Path) -> Done:
    """What has ended. A line that was cut short is left out: its bisection is done again."""
    done: Done = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            said = json.loads(line)
        except ValueError:
            continue
        given = said["verdict"]
        held = tuple((bool(a), bool(b)) for a, b in given["intervals"])
        verdict = Verdict(
            **given
            | {
                "intervals": held,
                "named": tuple(given["named"]),
                "suspect": tuple(given["suspect"]) if given["suspect"] else None,
            }
        )
        done[said["family"], verdict.seed] = verdict, said["seconds"]
    return done


def line(family: str, verdict: Verdict, seconds: float) -> str:
    """Of the file, without a newline."""
    return json.dumps({"family": family, "seconds": round(seconds, 2), "verdict": asdict(verdict)})


def jobs(names: Sequence[str], worlds: int, done: Mapping[Job, Any]) -> list[Job]:
    """What is left to do, by seed: whenever it stops, each row has as many worlds."""
    seeds = range(FIRST_SEED, FIRST_SEED + worlds)
    return [(name, seed) for seed in seeds for name in names if (name, seed) not in done]


def seconds_left(left: Sequence[Job], done: Done, pace: float) -> float:
    """How long the rest takes at `pace` seconds of a process in a second of the clock. Families
    differ by a factor of ten: each bisection counts as the mean of its family, or of all."""
    spent = [seconds for _, seconds in done.values()]
    if not spent or pace <= 0:
        return 0.0
    total, count = Counter[str](), Counter(name for name, _ in done)
    for (name, _), (_, seconds) in done.items():
        total[name] += seconds  # type: ignore[assignment]
    usual = sum(spent) / len(spent)
    return sum(total[n] / count[n] if count[n] else usual for n, _ in left) / pace


def kept(path: Path) -> IO[str]:
    """The file, to add lines; one that was cut short is ended first."""
    cut = path.exists() and not path.read_text().endswith("\n")
    lines = path.open("a")
    lines.write("\n" if cut else "")
    return lines


def _work(job: Job) -> tuple[Job, Verdict, float]:
    family = next(f for f in DIFFICULT if f.name == job[0])
    began = time.monotonic()
    return job, judge(family, job[1]), time.monotonic() - began


def run(left: Sequence[Job], done: Done, path: Path, processes: int, deadline: float) -> None:
    """Bisect and keep each result, with progress on stderr, until all is done or it is late
    (`deadline`, time.monotonic)."""
    began, spent = time.monotonic(), 0.0
    with (
        kept(path) as lines,
        multiprocessing.get_context("fork").Pool(processes, os.nice, (19,)) as pool,
    ):
        for at, (job, verdict, seconds) in enumerate(pool.imap_unordered(_work, left), 1):
            lines.write(line(job[0], verdict, seconds) + "\n")
            lines.flush()
            done[job] = verdict, seconds
            spent += seconds
            now = time.monotonic()
            rest = seconds_left(
                [each for each in left if each not in done], done, spent / (now - began)
            )
            print(
                f"\r{at}/{len(left)} bisections, {now - began:.0f} s, about {rest:.0f} s left   ",
                end="",
                file=sys.stderr,
                flush=True,
            )
            if now > deadline:
                break
    print(file=sys.stderr)


# --- what is written ------------------------------------------------------------------------------

COLUMNS: Final = (
    "world",
    "ranges",
    "claims",
    "right, %",
    "stated, %",
    "wrong",
    "stated wrong",
    "p",
    "intervals that hold",
    "suspects",
    "boots",
    "ended",
)


def row(name: str, verdicts: Sequence[Verdict]) -> list[str]:
    """One of the table. `p`: P(so many wrong claims or more | what was stated)."""
    found, said = figures(verdicts), claims(verdicts)
    return [
        name,
        str(found.worlds),
        str(found.claims),
        f"{100 * sum(r for _, r in said) / len(said):.1f}" if said else "-",
        f"{100 * sum(p for p, _ in said) / len(said):.1f}" if said else "-",
        str(found.wrong),
        f"{found.stated_wrong:.1f}",
        f"{too_sure(said):.1g}" if said else "-",
        f"{found.intervals - found.missed} of {found.intervals}" if found.intervals else "-",
        _suspects([v.suspect for v in verdicts if v.suspect is not None]),
        f"{sum(v.boots for v in verdicts) / len(verdicts):.0f}",
        kinds(verdicts),
    ]


def _suspects(said: Sequence[tuple[float, bool]]) -> str:
    if not said:
        return "-"
    stated = 100 * sum(p for p, _ in said) / len(said)
    return f"{sum(right for _, right in said)} of {len(said)}, stated {stated:.0f} %"


def rewritten(text: str, rows: Sequence[Sequence[str]], measured: date, command: str) -> str:
    """`results.yaml` with the table of these rows; all else stays as it is."""
    start = text.index(f"  title: {TITLE}\n")
    end = text.find("\n- section:", start)
    table = text[start : end if end >= 0 else len(text)]
    ranges = sorted({int(cells[1]) for cells in rows})
    most = f"{ranges[0]}" if len(ranges) == 1 else f"{ranges[0]} to {ranges[-1]}"
    for key, value in (
        ("measured", measured.isoformat()),
        ("command", json.dumps(command)),
        ("sample", json.dumps(f"{most} ranges a row, {sum(int(c[1]) for c in rows)} in all")),
        ("columns", json.dumps(list(COLUMNS))),
    ):
        table = re.sub(rf"^  {key}: .*$", f"  {key}: {value}", table, count=1, flags=re.MULTILINE)
    head = table[: table.index("  rows:\n")]
    body = "".join(f"    - {json.dumps(list(cells), ensure_ascii=False)}\n" for cells in rows)
    return text[:start] + head + "  rows:\n" + body + (text[end:] if end >= 0 else "")


def by_family(done: Done) -> Iterator[tuple[str, list[Verdict]]]:
    """In the order of the table, by seed."""
    for family in DIFFICULT:
        found = [verdict for (name, _), (verdict, _) in sorted(done.items()) if name == family.name]
        if found:
            yield family.name, found


def save(done: Done, worlds: int) -> None:
    """Write the table, its page, and the figures of the families that are known to be wrong."""
    command = f"python -m tests.calibration.difficult --worlds {worlds} --write"
    rows = [row(name, verdicts) for name, verdicts in by_family(done)]
    results.DATA.write_text(rewritten(results.DATA.read_text(), rows, date.today(), command))
    (ROOT / "docs" / "calibration-results.md").write_text(results.page())
    listed = known()
    for name, verdicts in by_family(done):
        if name in listed["families"]:
            listed["families"][name] = figures(verdicts)
            if mended(verdicts):
                print(f"{name}: honest in {len(verdicts)} worlds; take it off the list")
        elif too_sure(claims(verdicts)) < 0.001 and name in {f.name for f in FAMILIES}:
            print(f"{name}: too sure in {len(verdicts)} worlds; put it on the list")
    write(listed)


def _chosen(names: Sequence[str] | None, families: Sequence[Family] = DIFFICULT) -> list[str]:
    return [f.name for f in families if not names or any(n in f.name for n in names)]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.calibration.difficult",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--worlds", type=int, default=300, metavar="N", help="a row (default 300)")
    parser.add_argument("--family", action="append", metavar="NAME", help="name contains NAME")
    parser.add_argument(
        "--jobs",
        type=int,
        default=os.cpu_count() or 1,
        metavar="N",
        help="processes, at nice 19 (default: one for each processor)",
    )
    parser.add_argument("--minutes", type=float, metavar="N", help="stop after so long; 0: at once")
    parser.add_argument("--write", action="store_true", help="write the table and known.json")
    options = parser.parse_args()
    path = ROOT / "build" / f"difficult-{engine()}.jsonl"
    path.parent.mkdir(exist_ok=True)
    done = load(path)
    names = _chosen(options.family)
    left = jobs(names, options.worlds, done)
    late = time.monotonic() + 60 * options.minutes if options.minutes is not None else float("inf")
    if left and options.minutes != 0:
        print(f"{path.relative_to(ROOT)}: {len(done)} ended, {len(left)} to do", file=sys.stderr)
        run(left, done, path, options.jobs, late)
    for name, verdicts in by_family(done):
        print("| " + " | ".join(row(name, verdicts)) + " |")
    if options.write:
        save(done, options.worlds)


if __name__ == "__main__":
    main()
