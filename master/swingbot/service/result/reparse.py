"""Parse raw results again after a parser was fixed: raw results are kept, so that all samples can
be recomputed.

Each boot is one transaction: readers see either all old or all new values of its runs, and after a
crash it continues where it stopped. Runs that the current parser has already read are skipped.
Changes are recorded in table `reparse`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple

from swingbot.core.model.artifact import ArtifactError, Gone
from swingbot.core.model.records import StoredBoot, StoredRun
from swingbot.core.plan.seen_hardware import SEES
from swingbot.core.raw.changes import ChangedValues, changes
from swingbot.core.results.metric_names import within_budget
from swingbot.core.text.nearest import instead_of
from swingbot.service.ports import Catalogue, Lab, RequestError, Tools
from swingbot.service.ports.results import ReadingStopped
from swingbot.service.ports.runs import Runs
from swingbot.service.ports.specs import Specs
from swingbot.service.ports.transaction import OpenTransaction
from swingbot.service.result.ingest import read_runs, without_hardware
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.reading.result import ParsedRun, RunStatus
from swingbot_jobs.testbox.visible_hardware import short_of

BOOTS_AT_ONCE: Final = 200  # boots whose ids are looked up together
MOST_LISTED: Final = 1000  # changes listed in the result; table `reparse` has all of them


class RunChange(NamedTuple):
    """Old and new state of one run."""

    boot: int
    unit_job: str
    number: int
    old_status: RunStatus | Literal["not remembered"]
    new_status: RunStatus
    reason: str | None
    metrics: dict[str, ChangedValues]


@dataclass(kw_only=True)
class Reparsed:
    """Progress and result, updated while boots are read: number of `runs` read, and of `current`
    ones skipped because the current parser had read them.
    """

    boots: int = 0
    total: int = 0  # boots
    runs: int = 0
    current: int = 0
    changed: int = 0
    new: int = 0  # runs without a stored row
    metrics: dict[str, Counter[str]] = field(default_factory=dict)  # metric -> added, gone, changed
    statuses: Counter[tuple[str, str]] = field(default_factory=Counter)
    listed: list[RunChange] = field(default_factory=list)  # the first MOST_LISTED
    # (boot, why); the first MOST_LISTED
    unreadable: list[tuple[int, str]] = field(default_factory=list)
    lost: int = 0  # unreadable boots, which keep their stored values
    comparisons: list[int] = field(default_factory=list)
    bisections: list[int] = field(default_factory=list)

    def note(self, change: RunChange) -> None:
        self.changed += 1
        for metric, reread in change.metrics.items():
            self.metrics.setdefault(metric, Counter())[reread.kind] += 1
        if change.old_status != change.new_status:
            self.statuses[change.old_status, change.new_status] += 1
        if len(self.listed) < MOST_LISTED:
            self.listed.append(change)

    def note_unreadable(self, boot: int, why: str) -> None:
        self.lost += 1
        if len(self.unreadable) < MOST_LISTED:
            self.unreadable.append((boot, why))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReparseRequest:
    """Which runs are read again."""

    program: str | None = None  # None: every program; a monitor: all boots
    dry_run: bool = False  # change nothing
    again: bool = False  # also those that the current parser has read


def reparse(
    lab: Lab, request: ReparseRequest, tell: Callable[[Reparsed], None] = lambda done: None
) -> Reparsed:
    """Parse raw results of boots again.

    `tell` is called after each boot. Raises RequestError if the program does not exist.
    """
    program = request.program
    if program is not None and program not in lab.catalogue.programs:
        raise RequestError(
            f"program {program!r} does not exist; {instead_of(program, lab.catalogue.programs)}"
        )
    of = (
        program
        if program is not None and lab.catalogue.programs[program].kind == "benchmark"
        else None
    )
    with lab.transaction("count boots to read again") as tx:
        done = Reparsed(total=tx.runs.count_boots_with_results(of))
    touched: list[int] = []
    for boot in _boots(lab.transaction, of):
        changed = done.changed
        with lab.transaction("read a boot again") as tx:
            rereading = _Rereading(
                tools=lab.tools,
                catalogue=lab.catalogue,
                specs=tx.specs,
                runs=tx.runs,
                request=replace(request, program=of),
                done=done,
            )
            rereading.read(boot)
        done.boots += 1
        if done.changed > changed:
            touched.append(boot.id)
        tell(done)
    if touched:
        with lab.transaction("requests of boots that were read again") as tx:
            done.comparisons, done.bisections = tx.runs.requests_of_boots(touched)
    return done


def _boots(transaction: OpenTransaction, program: str | None) -> Iterator[StoredBoot]:
    after = 0
    while True:
        with transaction("find boots to read again") as tx:
            boots = tx.runs.boots_with_results(after, BOOTS_AT_ONCE, program)
        if not boots:
            return
        yield from boots
        after = boots[-1].id


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rereading:
    tools: Tools
    catalogue: Catalogue
    specs: Specs
    runs: Runs
    request: ReparseRequest
    done: Reparsed

    def read(self, boot: StoredBoot) -> None:
        done, programs = self.done, self.catalogue.programs
        spec = [
            job
            for job in self.specs.get(boot.spec)
            if job.program in programs and self.request.program in (None, job.program)
        ]
        parsers = {job.name: self.catalogue.parsers[job.program] for job in spec}
        stored = {
            (run.unit_job, run.number): run
            for run in self.runs.of_boot(boot.id, lock=not self.request.dry_run)
            if run.unit_job in parsers
        }
        again = self.request.again
        outdated = [job for job in spec if again or _is_old(job, stored, parsers[job.name])]
        done.current += sum(len(job.numbers) for job in spec if job not in outdated)
        if not outdated:
            return
        try:
            read = read_runs(
                self.tools, programs, outdated, boot.results, boot.outcome, boot.reason, boot.facts
            )
        except Gone as error:
            done.note_unreadable(boot.id, f"results.tar was {error}")
            return
        except FileNotFoundError:
            missing = f"results.tar is not in the artifact store (sha256 {boot.results})"
            done.note_unreadable(boot.id, missing)
            return
        except (ArtifactError, ReadingStopped) as error:
            done.note_unreadable(boot.id, str(error))
            return
        if lacking := self._lacking(boot, stored.values()):
            read = without_hardware(read, lacking)
        read = within_budget(read, self.runs.metric_names(boot.id, read), programs)
        done.runs += len(read)
        new = [run for run in read if (run.unit_job, run.number) not in stored]
        done.new += len(new)
        for run in new:
            differences = changes({}, run.samples)
            done.note(_change(boot.id, "not remembered", run, differences))
        if new and not self.request.dry_run:
            self.runs.add(boot.id, new, parsers)
        for run in read:
            if (old := stored.get((run.unit_job, run.number))) is not None:
                self._replace(boot.id, old, run, parsers[run.unit_job])

    def _lacking(self, boot: StoredBoot, stored: Iterable[StoredRun]) -> str | None:
        """Return why the runs of a boot stay invalid whose kernel saw less hardware than its
        testbox has; None if it saw all that the testbox file states now.

        Runs that counted keep counting: the machine may have grown since.
        """
        testbox = self.catalogue.testboxes.present.get(boot.testbox)
        if testbox is not None and short_of(testbox, boot.facts) is None:
            return None
        reasons = (run.reason for run in stored if run.reason and run.reason.startswith(SEES))
        return next(reasons, None)

    def _replace(self, boot: int, old: StoredRun, new: ParsedRun, parser: str) -> None:
        differences = changes(old.samples, new.samples)
        if differences or old.status != new.status or old.reason != new.reason:
            self.done.note(_change(boot, old.status, new, differences))
        if not self.request.dry_run:
            self.runs.replace(old, new, parser, differences)


def _change(
    boot: int,
    was: RunStatus | Literal["not remembered"],
    run: ParsedRun,
    differences: dict[str, ChangedValues],
) -> RunChange:
    return RunChange(boot, run.unit_job, run.number, was, run.status, run.reason, differences)


def _is_old(job: UnitJob, stored: dict[tuple[str, int], StoredRun], parser: str) -> bool:
    """Return whether any run of the job was read by another parser version, or not at all."""
    return any(
        (run := stored.get((job.name, number))) is None or run.parser != parser
        for number in job.numbers
    )
