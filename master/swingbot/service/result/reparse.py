"""Read history again after a parser was mended: raw results are kept, so that every sample can be made anew.

A boot is one transaction: whoever looks sees all old values of its runs or all new ones, and after a crash it goes on where it was.
A run that today's parser has read already is not read again. What changed is noted in table `reparse`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from swingbot.core.model.artifact import ArtifactError, Gone
from swingbot.core.model.records import StoredBoot, StoredRun
from swingbot.core.raw.changes import ChangedValues, changes
from swingbot.service.ports import Lab, RequestError, Transaction
from swingbot.service.ports.runs import Runs
from swingbot.service.result.ingest import read_runs
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.reading.result import ParsedRun, RunStatus

BOOTS_AT_ONCE: Final = 200  # whose ids are looked up together
MOST_TOLD: Final = 1000  # changes that the answer names one by one; table `reparse` has them all


class RunChange(NamedTuple):
    """What became of one run."""

    boot: int
    unit_job: str
    number: int
    old_status: RunStatus | Literal["not remembered"]
    new_status: RunStatus
    reason: str | None
    metrics: dict[str, ChangedValues]


@dataclass(kw_only=True)
class Reparsed:
    """The answer, which grows while boots are read: `runs` were read, `current` were not because today's parser had read them before."""

    boots: int = 0
    total: int = 0  # boots
    runs: int = 0
    current: int = 0
    changed: int = 0
    new: int = 0  # runs of which nothing was remembered
    metrics: dict[str, Counter[str]] = field(default_factory=dict)  # metric -> added, gone, changed
    statuses: Counter[tuple[str, str]] = field(default_factory=Counter)
    told: list[RunChange] = field(default_factory=list)  # the first MOST_TOLD
    # (boot, why); the first MOST_TOLD
    unreadable: list[tuple[int, str]] = field(default_factory=list)
    lost: int = 0  # boots that cannot be read; they keep what they have
    comparisons: list[int] = field(default_factory=list)
    bisections: list[int] = field(default_factory=list)

    def note(self, change: RunChange) -> None:
        self.changed += 1
        for metric, reread in change.metrics.items():
            self.metrics.setdefault(metric, Counter())[reread.kind] += 1
        if change.old_status != change.new_status:
            self.statuses[change.old_status, change.new_status] += 1
        if len(self.told) < MOST_TOLD:
            self.told.append(change)

    def note_unreadable(self, boot: int, why: str) -> None:
        self.lost += 1
        if len(self.unreadable) < MOST_TOLD:
            self.unreadable.append((boot, why))


def reparse(
    lab: Lab,
    *,
    program: str | None = None,
    dry_run: bool = False,
    again: bool = False,
    tell: Callable[[Reparsed], None] = lambda done: None,
) -> Reparsed:
    """Read the raw results of every boot, or of those that ran `program` (a monitor: of all), with today's parsers.

    `dry_run` changes nothing; `again` reads what today's parser has read already, too. `tell` is called after each boot.
    Raises RequestError for a program that is not there.
    """
    if program is not None and program not in lab.programs:
        raise RequestError(
            f"there is no program {program!r}; known are {', '.join(sorted(lab.programs))}"
        )
    of = program if program is not None and lab.programs[program].kind == "benchmark" else None
    with lab.transaction("count boots to read again") as tx:
        done = Reparsed(total=tx.runs.count_boots_with_results(of))
    touched: list[int] = []
    for boot in _boots(lab, of):
        changed = done.changed
        with lab.transaction("read a boot again") as tx:
            _reread(lab, tx, boot, of, done, dry_run=dry_run, again=again)
        done.boots += 1
        if done.changed > changed:
            touched.append(boot.id)
        tell(done)
    if touched:
        with lab.transaction("requests of boots that were read again") as tx:
            done.comparisons, done.bisections = tx.runs.requests_of_boots(touched)
    return done


def _boots(lab: Lab, program: str | None) -> Iterator[StoredBoot]:
    after = 0
    while True:
        with lab.transaction("find boots to read again") as tx:
            found = tx.runs.boots_with_results(after, BOOTS_AT_ONCE, program)
        if not found:
            return
        yield from found
        after = found[-1].id


def _reread(
    lab: Lab,
    tx: Transaction,
    boot: StoredBoot,
    program: str | None,
    done: Reparsed,
    *,
    dry_run: bool,
    again: bool,
) -> None:
    spec = [
        job
        for job in tx.specs.get(boot.spec)
        if job.program in lab.programs and program in (None, job.program)
    ]
    parsers = {job.name: lab.parsers[job.program] for job in spec}
    stored = {
        (run.unit_job, run.number): run
        for run in tx.runs.of_boot(boot.id, lock=not dry_run)
        if run.unit_job in parsers
    }
    wanted = [job for job in spec if again or _is_old(job, stored, parsers[job.name])]
    done.current += sum(len(job.numbers) for job in spec) - sum(len(job.numbers) for job in wanted)
    if not wanted:
        return
    try:
        runs = read_runs(lab, wanted, boot.results, boot.outcome, boot.reason, boot.facts)
    except Gone as error:
        done.note_unreadable(boot.id, f"results.tar was {error}")
        return
    except (FileNotFoundError, ArtifactError) as error:
        done.note_unreadable(
            boot.id,
            str(error)
            if isinstance(error, ArtifactError)
            else f"results.tar is not in the artifact store (sha256 {boot.results})",
        )
        return
    done.runs += len(runs)
    _add_new(
        tx,
        boot.id,
        [run for run in runs if (run.unit_job, run.number) not in stored],
        parsers,
        done,
        dry_run=dry_run,
    )
    for run in runs:
        if (old := stored.get((run.unit_job, run.number))) is not None:
            _replace(tx.runs, boot.id, old, run, parsers[run.unit_job], done, dry_run=dry_run)


def _is_old(job: UnitJob, stored: dict[tuple[str, int], StoredRun], parser: str) -> bool:
    """Whether any run of it was read by another parser than today's, or by none."""
    return any(
        (run := stored.get((job.name, number))) is None or run.parser != parser
        for number in job.numbers
    )


def _add_new(
    tx: Transaction,
    boot: int,
    runs: Sequence[ParsedRun],
    parsers: dict[str, str],
    done: Reparsed,
    *,
    dry_run: bool,
) -> None:
    if not runs:
        return
    done.new += len(runs)
    for run in runs:
        done.note(
            RunChange(
                boot,
                run.unit_job,
                run.number,
                "not remembered",
                run.status,
                run.reason,
                changes({}, run.samples),
            )
        )
    if not dry_run:
        tx.runs.add(boot, runs, parsers)


def _replace(
    runs: Runs,
    boot: int,
    old: StoredRun,
    new: ParsedRun,
    parser: str,
    done: Reparsed,
    *,
    dry_run: bool,
) -> None:
    differences = changes(old.samples, new.samples)
    if differences or old.status != new.status or old.reason != new.reason:
        done.note(
            RunChange(
                boot, new.unit_job, new.number, old.status, new.status, new.reason, differences
            )
        )
    if not dry_run:
        runs.replace(old, new, parser, differences)
