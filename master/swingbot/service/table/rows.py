"""Compute the rows of a comparison on one testbox from the boots of its arms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from swingbot.core.model.comparison_row import NO_BOOTS, ComparisonRow, Key
from swingbot.core.model.records import Arm, Comparison
from swingbot.core.model.statuses import Reference
from swingbot.core.plan.aliases import with_aliases
from swingbot.core.plan.boot_series import series_for
from swingbot.core.plan.metric_rules import makes_row, metric_of, rule_of, runs_with
from swingbot.core.stats.compare import BootRuns, Rule
from swingbot.core.stats.family import compare_family, recoveries
from swingbot.core.stats.looks import FIRST_LOOK, Look
from swingbot.core.table.references import references_of
from swingbot.service.ports import Lab, Transaction
from swingbot.service.result.boots import Values, boots_of
from swingbot.service.result.differences import Differences, differences_of
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import Metric
from swingbot_jobs.testbox.definition import Testbox


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmKernel:
    """State of an arm's kernel."""

    arm: Arm
    commit: str
    parents: Sequence[str] = ()  # of an experiment's kernel
    image: str | None  # sha256; None: the kernel does not exist
    trouble: str | None = None  # the reason in that case, as a predicate: "does not build: ..."


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmBoots:
    """Results of one arm's boots on the testbox."""

    image: str
    spec: str
    values: Values
    problems: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Family:
    """The boots that the rows of one metric are computed from."""

    pairs: Sequence[tuple[int, int]]  # (reference, row) as indices into the table
    known: Sequence[Differences]  # for each pair
    boots: Sequence[Sequence[BootRuns]]
    sides: Sequence[tuple[int, int]]  # for each pair, as indices into `boots`


@dataclass(frozen=True, slots=True, kw_only=True)
class TestboxPart:
    """One testbox and the unit jobs it runs."""

    lab: Lab
    tx: Transaction
    comparison: Comparison
    testbox: str
    spec: str
    look: Look = FIRST_LOOK

    @property
    def definition(self) -> Testbox:
        return self.lab.catalogue.testboxes.known(self.testbox)

    def rows(
        self, kernels: Sequence[ArmKernel], arms: Sequence[ArmBoots | None]
    ) -> Iterator[ComparisonRow]:
        """Return all rows, by rule and metric; an arm without a kernel has one row per unit job."""
        jobs = {job.name: job for job in self.tx.specs.get(self.spec)}
        return with_aliases(self._rows(kernels, arms, jobs), jobs, self.lab.catalogue.programs)

    def _rows(
        self,
        kernels: Sequence[ArmKernel],
        arms: Sequence[ArmBoots | None],
        jobs: Mapping[str, UnitJob],
    ) -> Iterator[ComparisonRow]:
        keys = _in_order(self.lab, jobs, [arm.values for arm in arms if arm is not None])
        headlines = sum(metric_of(self.lab.catalogue.programs, name).headline for _, name in keys)
        heard = {job for arm in arms if arm for job, _ in arm.values}
        silent = [job for job in jobs.values() if job.name not in heard]
        missing = {place for place, arm in enumerate(arms) if arm is None or not arm.values}
        for against in self.comparison.against:
            pairs = references_of(against, self.comparison.arms, missing)
            built = [(i, j) for i, j in pairs if arms[i] is not None and arms[j] is not None]
            differences = {pair: self._differences(arms, pair) for pair in built}
            for unit_job, metric in keys:
                rule = self._rule(jobs[unit_job], metric, headlines)
                family = self._family(arms, built, differences, jobs[unit_job], metric)
                rows = self._judged(family, arms, jobs[unit_job], metric, rule, against)
                for (reference, arm), row in zip(built, rows, strict=True):
                    if against == "above":
                        row = _attributed(row, kernels[reference], kernels[arm])
                    yield replace(row, against=against, reference=reference, arm=arm)
            for reference, arm in pairs:
                for row in (
                    self._silent(silent, [*_problems(arms[reference]), *_problems(arms[arm])])
                    if (reference, arm) in built
                    else self._without_kernel(jobs, _unbuilt(kernels, reference, arm))
                ):
                    yield replace(row, against=against, reference=reference, arm=arm)

    def _silent(self, jobs: Sequence[UnitJob], problems: Sequence[str]) -> Iterator[ComparisonRow]:
        """Return a row for each unit job without a result from any kernel."""
        why = "; ".join(["no run of either kernel reported a result", *problems[:1]])
        return (self._nothing(job, why, problems) for job in jobs)

    def _without_kernel(self, jobs: Mapping[str, UnitJob], why: str) -> Iterator[ComparisonRow]:
        """Return a row for each unit job of a pair that lacks a kernel."""
        return (self._nothing(job, why, ()) for job in jobs.values())

    def means(self, arm: ArmBoots | None) -> dict[Key, list[float]]:
        """Return the boot means of one arm by (testbox, unit job, metric)."""
        return {
            (self.testbox, *key): [
                sum(boot.values) / len(boot.values) for boot in boots if boot.values
            ]
            for key, boots in (arm.values if arm else {}).items()
        }

    def measured(self, kernel: ArmKernel) -> ArmBoots | None:
        """Return the boot results of an arm; None if it has no kernel."""
        if kernel.image is None:
            return None
        spec = kernel.arm.spec(self.spec)
        series, numbers = series_for(self.definition, self.comparison), self.comparison.numbers
        values, problems = boots_of(
            self.tx.specs, self.tx.boots, kernel.image, self.testbox, spec, series, numbers
        )
        return ArmBoots(image=kernel.image, spec=spec, values=values, problems=problems)

    def _differences(self, arms: Sequence[ArmBoots | None], pair: tuple[int, int]) -> Differences:
        sides = [arm for place in pair if (arm := arms[place]) is not None]
        return differences_of(
            self.tx.specs,
            self.tx.boots,
            [side.image for side in sides],
            self.definition,
            [side.spec for side in sides],
            series_for(self.definition, self.comparison),
            self.comparison.numbers,
        )

    def _rule(self, job: UnitJob, name: str, headlines: int) -> Rule:
        metric = metric_of(self.lab.catalogue.programs, name)
        record = (
            self.tx.noise.get(self.testbox, job.name, name) if metric.klass == "benchmark" else None
        )
        rule = rule_of(self.definition, metric, job, record)
        return replace(
            self.look.rule(rule),
            headlines=headlines if metric.headline else 0,
            # The boots of a bisection have already shown that these two kernels differ.
            unimodal=rule.unimodal or self.comparison.kind in ("attribute", "gate"),
        )

    def _family(
        self,
        arms: Sequence[ArmBoots | None],
        pairs: Sequence[tuple[int, int]],
        differences: Mapping[tuple[int, int], Differences],
        job: UnitJob,
        name: str,
    ) -> _Family:
        """Return the boots of each side of each pair, for one metric of one unit job."""
        known = {pair: differences[pair].of(job) for pair in pairs}
        boots: dict[tuple[int, int], list[BootRuns]] = {}  # by arm and first boot that counts
        sides = []
        for pair in pairs:
            first = self._first_together(pair)
            for side, place in enumerate(pair):
                arm = arms[place]
                measured = arm.values.get((job.name, name), []) if arm else []
                all_boots = known[pair].with_lost(
                    side, measured, runs_with(self.lab.catalogue.programs, job, name)
                )
                boots[place, first] = [boot for boot in all_boots if boot.k >= first]
            places = list(boots)
            sides.append((places.index((pair[0], first)), places.index((pair[1], first))))
        return _Family(
            pairs=pairs,
            known=[known[pair] for pair in pairs],
            boots=list(boots.values()),
            sides=sides,
        )

    def _judged(
        self,
        family: _Family,
        arms: Sequence[ArmBoots | None],
        job: UnitJob,
        name: str,
        rule: Rule,
        against: Reference,
    ) -> list[ComparisonRow]:
        """Return the rows of a family, in the order of its pairs."""
        invalid = {i: why for i, known in enumerate(family.known) if (why := known.must)}
        rows = [
            self.look.admitted(row, (self.testbox, job.name, name, against, arm))
            for (_, arm), row in zip(
                family.pairs,
                compare_family(family.boots, family.sides, rule, invalid=invalid),
                strict=True,
            )
        ]
        if against == "above":
            rows = self._with_recoveries(family, rows, rule)
        metric = metric_of(self.lab.catalogue.programs, name)
        return [
            _with_findings(
                row,
                known,
                [_problems(arms[place]) for place in pair],
                self._names(job, metric),
            )
            for pair, known, row in zip(family.pairs, family.known, rows, strict=True)
        ]

    def _with_recoveries(
        self, family: _Family, rows: Sequence[ComparisonRow], rule: Rule
    ) -> list[ComparisonRow]:
        """Add the reason to both rows where one change reverts another."""
        marked = list(rows)
        for recovery in recoveries(family.boots, family.sides, rows, rule):
            change, back = (
                self.comparison.arms[family.pairs[i][1]].name
                for i in (recovery.change, recovery.back)
            )
            extent = "all of it" if recovery.shown else "as far as can be resolved"
            for i, words in (
                (recovery.change, f"{back} reverts it"),
                (recovery.back, f"reverts {change}, {extent}"),
            ):
                reason = marked[i].reason
                marked[i] = replace(marked[i], reason=f"{reason}; {words}" if reason else words)
        return marked

    def _first_together(self, pair: tuple[int, int]) -> int:
        """Return the first k at which both arms were booted together."""
        arms = self.comparison.arms
        return self.comparison.first_k + max(arms[place].from_block for place in pair)

    def _names(self, job: UnitJob, metric: Metric) -> dict[str, object]:
        return {
            "testbox": self.definition.name,
            "label": self.definition.label,
            "unit_job": job.name,
            "metric": metric.name,
            "unit": metric.unit,
            "headline": metric.headline,
        }

    def _nothing(self, job: UnitJob, why: str, problems: Sequence[str]) -> ComparisonRow:
        """Return a row without values, only with the reason, under a headline metric's name."""
        metric = next(
            m for m in self.lab.catalogue.programs[job.program].metrics.values() if m.headline
        )
        return ComparisonRow(
            unit_job=job.name,
            testbox=self.definition.name,
            label=self.definition.label,
            metric=metric.name,
            unit=metric.unit,
            klass=metric.klass,
            better=metric.better,
            base=NO_BOOTS,
            head=NO_BOOTS,
            change_pct=None,
            interval_pct=None,
            verdict="invalid",
            reason=why,
            min_effect_pct=metric.min_effect(job.params),
            problems=tuple(problems[:6]),
            headline=True,
        )


def _attributed(row: ComparisonRow, above: ArmKernel, own: ArmKernel) -> ComparisonRow:
    """Return a row with a change attributed to its commit, if the row above is the parent.

    No bisection is needed then: no other commit is between them.
    """
    if not row.changed or not row.headline or own.parents[:1] != [above.commit]:
        return row
    what = "patch" if len(own.parents) == 1 else "merge"
    words = f"attributed to this {what}: the row above is its parent"
    reason = f"{words}; {row.reason}" if row.reason else words
    return replace(row, attributed_to=own.commit, reason=reason)


def _unbuilt(kernels: Sequence[ArmKernel], reference: int, arm: int) -> str:
    """Return why a pair has no kernel of its row or of its reference."""
    own = kernels[arm]
    if own.trouble is not None:
        return f"the kernel {own.trouble}"
    return (
        f"the kernel that it is compared with, {kernels[reference].arm.name}, "
        f"{kernels[reference].trouble}"
    )


def _problems(arm: ArmBoots | None) -> Sequence[str]:
    return arm.problems if arm is not None else ()


def _in_order(
    lab: Lab, unit_jobs: Mapping[str, UnitJob], sides: Sequence[Values]
) -> list[tuple[str, str]]:
    """Return (unit job, metric) in the order of the job file and of meta.yaml, without metrics that
    are only stored.
    """
    keys = {
        key
        for side in sides
        for key, boots in side.items()
        if key[0] in unit_jobs and makes_row(metric_of(lab.catalogue.programs, key[1]), boots)
    }
    jobs = list(unit_jobs)

    def place(key: tuple[str, str]) -> tuple[int, int, int, str]:
        unit_job, metric = key
        program = unit_jobs[unit_job].program
        own = list(lab.catalogue.programs[program].metrics)
        return (
            jobs.index(unit_job),
            0 if metric.startswith(f"{program}.") else 1,
            own.index(metric) if metric in own else len(own),
            metric,
        )

    return sorted(keys, key=place)


def _with_findings(
    judged: ComparisonRow,
    known: Differences,
    problems: Sequence[Sequence[str]],
    names: Mapping[str, object],
) -> ComparisonRow:
    """Return a row with its names and with findings other than its numbers."""
    verdict, reason = judged.verdict, judged.reason
    if known.identical:
        verdict, reason = "same", "the two kernel images are byte-identical"
    elif known.explanation and judged.changed:
        reason = f"{reason}; {known.explanation}" if reason else known.explanation
    elif verdict == "invalid" and any(problems):
        reason = f"{reason}; {next(p for p in problems if p)[0]}"
    return replace(
        judged,
        **names,  # type: ignore[arg-type]
        verdict=verdict,
        reason=reason,
        problems=(*problems[0][:3], *problems[1][:3]),
    )
