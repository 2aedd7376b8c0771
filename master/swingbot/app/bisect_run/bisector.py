"""The bisection loop: journal -> next step of the engine -> boots -> journal, until it concludes.

Merges: the chain of the range is searched first. If a merge is the culprit, its branch is searched
by a bisection of its own between the fork point and the merged tip, in the same journal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Final

from swingbot.app.bisect_run import noise_prior
from swingbot.app.bisect_run.command_pool import CommandPool
from swingbot.app.bisect_run.commit_range import CommitRange, branches, make_range
from swingbot.app.bisect_run.failures import RunError
from swingbot.app.bisect_run.journal import BootRequest, BootResult, Journal
from swingbot.app.bisect_run.measurable_ends import next_ends, with_outside
from swingbot.app.bisect_run.repository import Repository
from swingbot.core.bisect.decide.step import step
from swingbot.core.bisect.evidence.range_evidence import gather
from swingbot.core.bisect.state import (
    BisectionState,
    Conclude,
    Conclusion,
    Measure,
    PointState,
    Wait,
)
from swingbot.core.bisect.thresholds import Policy
from swingbot.core.model.bisection import Observation, WantedBoot
from swingbot.core.model.noise import NoisePrior

_SLACK: Final = 10.0  # timeout of a boot as a multiple of the longest boot so far
_SUREST: Final = 0.9999  # highest probability that is asked for, as of --confidence
_LEAST_LIMIT: Final = 60.0  # shortest such timeout, in seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """Options of the search; none of them changes the meaning of a value."""

    policy: Policy
    min_effect_pct: float
    noise_pct: float | None
    timeout: float | None  # seconds; None: derived from earlier boots; 0: no timeout
    first_parent: bool
    paths: tuple[str, ...]
    layouts: bool = False  # what CMD builds is in the layout given by SWINGBOT_LAYOUT


@dataclass(frozen=True, slots=True)
class LinearRange:
    """One linear bisection: the whole range (name "") or a merged branch (name "MERGE:TIP")."""

    name: str
    range: CommitRange
    outside: frozenset[str] = frozenset()  # commits beyond ends that were moved


@dataclass(frozen=True, slots=True)
class MergeResult:
    """A merge that was named as the culprit, and the conclusion about its branch."""

    merge: str
    part: LinearRange
    conclusion: Conclusion


@dataclass(frozen=True, slots=True)
class RangeResult:
    part: LinearRange
    conclusion: Conclusion
    entered: tuple[MergeResult, ...] = ()
    first_parent: bool = False


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    """Progress to show to the user."""

    # "boot" (started), "ended" (boot ended), "note" (such as that a branch is searched)
    kind: str
    part: LinearRange
    asked: BootRequest | None = None
    booted: BootResult | None = None
    why: str = ""
    warning: str | None = None


Listener = Callable[[ProgressEvent, "Bisector"], None]
# (range, index) -> commits with the level of that commit, measured in its place; () without any
Controls = Callable[[CommitRange, int], tuple[str, ...]]


@dataclass
class Bisector:
    journal: Journal
    lab: CommandPool
    repository: Repository
    wanted: SearchOptions
    listen: Listener
    controls: Controls = lambda whole, idx: ()
    whys: dict[tuple[str, str, int], str] = field(default_factory=dict)
    # part -> probability required to name a commit of it, where it is not --confidence
    confidences: dict[str, float] = field(default_factory=dict)

    def run(self, whole: CommitRange) -> RangeResult:
        """Bisect until there is a conclusion.

        Raises RunError after killing the boots in flight; the next invocation requests them again.
        """
        try:
            part = LinearRange("", whole)
            conclusion = self._bisect(part)
            conclusion, entered = self._enter_merges(part, conclusion)
            return RangeResult(part, conclusion, tuple(entered), self.wanted.first_parent)
        finally:
            self.lab.stop()

    # -- one linear range

    def _bisect(self, part: LinearRange) -> Conclusion:
        """Bisect between the ends of the range, or commits near them that can be measured."""
        full, last = part.range, len(part.range.shas) - 1
        first = conclusion = self._search(part)
        ends, same, alike = (0, last), None, None  # `same`: what was concluded between `alike`
        while (can := self._measurable(part)) and not (can[0] and can[last]):
            if conclusion.kind == "not_reproduced":
                same, alike = conclusion, ends
            elif can[ends[0]] and can[ends[1]]:
                break
            moved = next_ends(can, alike)
            if moved is None:
                return first
            ends = moved
            if moved == alike and same is not None:
                conclusion = same
                break
            inner = full.between(*ends)
            outside = frozenset(full.shas).difference(inner.shas)
            conclusion = self._search(LinearRange(part.name, inner, outside))
        if ends == (0, last):
            return conclusion
        conclusion = replace(conclusion, reason=full.between(*ends).in_words(conclusion.reason))
        return with_outside(conclusion, ends, full, self._why(full), self.wanted.policy)

    def _measurable(self, part: LinearRange) -> tuple[bool, ...]:
        return gather(self.state(part), self.wanted.policy).measurable

    def _why(self, full: CommitRange) -> str:
        """Why ends of the range cannot be measured."""
        whys = {b.sha: b.untestable or b.failed for b in self.journal.booted if not b.values}
        ends = (("good", full.shas[0]), ("bad", full.shas[-1]))
        return "; ".join(
            f"the {which} end {sha[:12]} cannot be measured ({whys[sha]})"
            for which, sha in ends
            if sha in whys
        )

    def _search(self, part: LinearRange) -> Conclusion:
        queue = self._unanswered(part)
        while True:
            if not queue and self.lab.free:
                action = step(self.state(part), self.policy(part))
                if isinstance(action, Conclude):
                    self.lab.stop()
                    return action.conclusion
                if isinstance(action, Measure):
                    queue = self._ask(part, action)
                elif isinstance(action, Wait) and not self.lab.busy:
                    raise RunError(f"the bisection waits, but no boot is running: {action.why}")
            while queue and self.lab.free:
                self._start(part, queue.pop(0))
            if self.lab.busy:
                self._learn(part)
                queue = [a for a in self._unanswered(part) if a not in self.lab.under_way]

    def _unanswered(self, part: LinearRange) -> list[BootRequest]:
        return [a for a in self.journal.unanswered(part.name) if a.sha not in part.outside]

    def _ask(self, part: LinearRange, action: Measure) -> list[BootRequest]:
        controls = self._controls(part)
        wanted = [
            BootRequest(
                part=part.name,
                sha=part.range.shas[r.idx],
                k=r.k,
                phase=action.phase,
                layout=r.layout,
                control=controls[r.idx][r.layout - 1] if r.layout and r.idx in controls else "",
            )
            for r in action.requests
        ]
        self.journal.ask(wanted, action.why)
        for request in wanted:
            self.whys[request.part, request.sha, request.k] = action.why
        return wanted

    def _controls(self, part: LinearRange) -> dict[int, tuple[str, ...]]:
        """Index of each commit that was a suspect or the parent of one -> its controls.

        Those that were asked for keep their number, whatever the repository holds by now. None
        where the numbers are those of layouts.
        """
        booted = [b for b in self.journal.booted if b.part == part.name]
        if self.layouts or any(b.layout and not (b.control or b.unvaried) for b in booted):
            return {}
        asked = [a for a in self.journal.asked if a.part == part.name]
        index = {sha: i for i, sha in enumerate(part.range.shas)}
        controls = {}
        for sha in {a.sha for a in asked if a.phase == "confirm" and a.sha in index}:
            found = dict(enumerate(self.controls(part.range, index[sha]), start=1))
            found |= {a.layout: a.control for a in asked if a.sha == sha and a.control}
            controls[index[sha]] = tuple(found[number] for number in sorted(found))
        return controls

    def _start(self, part: LinearRange, asked: BootRequest) -> None:
        self.listen(
            ProgressEvent(
                "boot",
                part,
                asked=asked,
                why=self.whys.get(
                    (asked.part, asked.sha, asked.k), "requested before the interruption"
                ),
            ),
            self,
        )
        self.lab.start(asked, self._limit(part))

    def _learn(self, part: LinearRange) -> None:
        booted, warning = self.lab.next()
        if (
            booted.failed
            and not any(b.values for b in self.journal.booted)
            and booted.failed == "CMD printed no number"
        ):
            raise RunError(
                f"CMD printed no number for commit {booted.sha[:12]} (exit status 0); it must print"
                " one number per run to stdout, each on its own line"
            )
        if booted.image and not (booted.control or booted.unvaried):
            booted = replace(booted, unvaried=self._same_image(booted))
        if booted.unvaried and self.layouts:
            why = f"layouts cannot be varied, so the search goes on without: {booted.unvaried}"
            self.listen(ProgressEvent("note", part, why=why), self)
        self.journal.boot(booted)
        self.listen(ProgressEvent("ended", part, booted=booted, warning=warning), self)

    def _same_image(self, booted: BootResult) -> str | None:
        """Why the file that CMD built is not in another layout of the commit; None if it is."""
        others = [
            b.built_in
            for b in self.journal.booted
            if (b.control or b.sha, b.image) == (booted.sha, booted.image)
            and b.built_in != booted.built_in
        ]
        if not others:
            return None
        return f"the image of layout {booted.built_in} is that of layout {others[0]}"

    def _limit(self, part: LinearRange) -> float | None:
        """Timeout of a boot in seconds; None until both ends have been measured."""
        if self.wanted.timeout is not None:
            return self.wanted.timeout or None
        good, bad = part.range.shas[0], part.range.shas[-1]
        took = [(b.sha, b.seconds) for b in self.journal.booted if b.values]
        if not {good, bad} <= {sha for sha, _ in took}:
            return None
        return max(_LEAST_LIMIT, _SLACK * max(seconds for _, seconds in took))

    # -- input of the engine

    @property
    def layouts(self) -> bool:
        """Whether the layout is varied, which the first boot without effect ends."""
        return self.wanted.layouts and self.journal.unvaried is None

    def policy(self, part: LinearRange) -> Policy:
        """Policy with the boots that the other parts leave."""
        spent = sum(b.part != part.name for b in self.journal.booted_until(part.name))
        most = max(1, self.wanted.policy.max_boots - spent)
        return replace(self.wanted.policy, max_boots=most, confidence=self._confidence(part))

    def _confidence(self, part: LinearRange) -> float:
        return self.confidences.get(part.name, self.wanted.policy.confidence)

    def state(self, part: LinearRange) -> BisectionState:
        """State of the bisection, from the journal alone. Raises RunError for a foreign commit."""
        index = {sha: i for i, sha in enumerate(part.range.shas)}
        booted = self.journal.booted_until(part.name)
        mine = [b for b in booted if b.part == part.name and b.sha not in part.outside]
        asked = self._unanswered(part)
        shas = [*(b.sha for b in mine), *(a.sha for a in asked)]
        foreign = next((sha for sha in shas if sha not in index), None)
        if foreign is not None:
            raise RunError(
                f"{self.journal.path} mentions commit {foreign[:12]}, which is not in the range;"
                " start over with --restart"
            )
        untestable = {b.sha: b.untestable for b in booted if b.untestable}
        weights, controls = part.range.weights, self._controls(part)
        return BisectionState(
            points=tuple(
                PointState(
                    idx=i,
                    weight=weights[i],
                    built=True,
                    skipped=untestable.get(sha),
                    controls=len(controls.get(i, ())),
                )
                for sha, i in index.items()
            ),
            observations=tuple(
                Observation(
                    idx=index[b.sha],
                    k=b.k,
                    values=b.values,
                    skip=b.failed or b.untestable,
                    phase=b.phase,
                    layout=0 if b.unvaried else b.layout,
                    at=b.at,
                )
                for b in mine
            ),
            in_flight=tuple(
                WantedBoot(index[a.sha], a.k, a.phase, a.layout if a.control or self.layouts else 0)
                for a in asked
            ),
            better=None,
            min_effect_pct=self.wanted.min_effect_pct,
            noise=self._noise(part, booted),
            boot_cost_seconds=_median_seconds(booted) or 1.0,
            layouts=self.layouts,
            layout_cost_seconds=0.0,  # CMD builds for every boot, or caches its builds
        )

    def _noise(self, part: LinearRange, booted: list[BootResult]) -> NoisePrior:
        if self.wanted.noise_pct is not None:
            return noise_prior.known(self.wanted.noise_pct, self.wanted.min_effect_pct / 100)
        boots: dict[str, list[tuple[float, ...]]] = {}
        for b in booted:
            if b.values:
                boots.setdefault(b.control or b.sha, []).append(b.values)
        return noise_prior.estimate(
            boots, (part.range.shas[0], part.range.shas[-1]), self.wanted.min_effect_pct / 100
        )

    def boot_seconds(self) -> float | None:
        """Median duration of all boots; None before the first one."""
        return _median_seconds(self.journal.booted)

    # -- merges

    def _enter_merges(
        self, part: LinearRange, conclusion: Conclusion
    ) -> tuple[Conclusion, list[MergeResult]]:
        """Search the branches of all merges that the conclusion names, and of merges in these.

        Half of the doubt that --confidence leaves is for the merge, the rest for its branch: a
        commit of it has the product of both probabilities. A merge that does not get there is
        named itself.
        """
        if self.wanted.first_parent:
            return conclusion, []
        results: list[MergeResult] = []
        asked = self._confidence(part)
        if conclusion.kind == "culprit" and self._branches(part, conclusion.culprits[0].idx):
            self.confidences[part.name] = 1.0 - (1.0 - asked) / 2.0
            surer = self._bisect(part)
            if (surer.kind, surer.members) != ("culprit", conclusion.members):
                return (conclusion if (surer.probability or 0.0) >= asked else surer), []
            conclusion = surer
        for culprit in conclusion.culprits:
            single = conclusion.kind == "culprit"
            results += self._enter(
                part, culprit.idx, min(asked / culprit.probability, _SUREST) if single else asked
            )
            if conclusion.kind == "credible_set" and any(
                r.conclusion.kind == "culprit" for r in results
            ):
                break
        return conclusion, results

    def _branches(self, outer: LinearRange, idx: int) -> list[tuple[str, str]]:
        """(fork point, tip) of each branch that the merge brought in; [] if it is none."""
        parent = outer.range.parent(idx)
        found = []
        for tip in branches(outer.range.commits[outer.range.shas[idx]], parent):
            fork = self.repository.merge_base(parent, tip)
            if fork is not None and fork != tip:
                found.append((fork, tip))
        return found

    def _enter(self, outer: LinearRange, idx: int, confidence: float) -> list[MergeResult]:
        """Search the branches of a merge in turn until one contains the change."""
        results: list[MergeResult] = []
        merge = outer.range.shas[idx]
        for fork, tip in self._branches(outer, idx):
            part = LinearRange(f"{merge}:{tip[:12]}", self.read_range(fork, tip))
            self.confidences[part.name] = confidence
            self.listen(
                ProgressEvent(
                    "note",
                    part,
                    why=f"{merge[:12]} is a merge; searching the branch that it merged",
                ),
                self,
            )
            conclusion, deeper = self._bisect(part), list[MergeResult]()
            if conclusion.kind == "culprit":
                conclusion, deeper = self._enter_merges(part, conclusion)
            results.append(MergeResult(merge, part, conclusion))
            if conclusion.kind != "not_reproduced":
                return results + deeper
        return results

    def read_range(self, good: str, bad: str) -> CommitRange:
        """Read the range from git. Raises RunError."""
        relevant = (
            self.repository.touching(good, bad, self.wanted.paths) if self.wanted.paths else None
        )
        return make_range(good, bad, self.repository.log(good, bad), relevant)


def _median_seconds(booted: list[BootResult]) -> float | None:
    return median(b.seconds for b in booted) if booted else None
