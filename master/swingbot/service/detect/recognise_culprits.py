"""Recognise known culprits that are still in a rebased branch, with one pair of boots instead of
another proof and bisection.

A suspected swing of a tip whose range has a copy of an incident's culprit waits for a comparison of
that copy with its own parent (kind `still`, one boot per side). If the culprit is still effective
and explains the swing, the swing is `known`. An effect of the tip beyond it is searched for on
either side of the culprit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from swingbot.core.incident.level import log_ratio, percent
from swingbot.core.incident.model import Incident
from swingbot.core.incident.recognise import (
    PairNoise,
    Recognition,
    beyond_known,
    recognise,
)
from swingbot.core.model import ids
from swingbot.core.model.comparison_row import ComparisonRow, row_of
from swingbot.core.model.noise import NOISY
from swingbot.core.model.records import (
    Bisection,
    Comparison,
    NewComparison,
    Swing,
    Tree,
    base_and_head,
)
from swingbot.core.model.statuses import IncidentStatus
from swingbot.core.plan import swings as plan
from swingbot.core.plan.boot_series import series_of
from swingbot.core.plan.metric_rules import metric_of, rule_of
from swingbot.core.plan.noise import layout_sd, pair_prior
from swingbot.core.plan.relevance import of_patch
from swingbot.service.detect.expect_changes import copy_within
from swingbot.service.incident.keep import OURSELVES
from swingbot.service.incident.versions import (
    kept_variant,
    still_slow,
    unmeasured_version,
    waits_for_fix,
)
from swingbot.service.kernel.images import all_images_of
from swingbot.service.kernel.variants import built_as, on_testbox, variant_of
from swingbot.service.ports import Catalogue, Git, GitError, RequestError, Transaction
from swingbot.service.result.boots import boots_of

# Incidents that were reported, or that a person silenced. A fixed incident is over: if its culprit
# shows again, it is back.
_TOLD: Final[tuple[IncidentStatus, ...]] = ("open", "closed", "invalid")
_Z95: Final = 1.96  # standard errors in half a 95 % interval


@dataclass(frozen=True, slots=True, kw_only=True)
class CulpritCopy:
    """A known culprit as `commit` in the range of a tip.

    `commit` None: its new version is being measured.

    `effect` is its effect on the metric, `error` the standard error (both log ratios).
    """

    incident: int
    bisection: Bisection
    commit: str | None
    effect: float
    error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Recogniser:
    """Compares the swings of one round with the culprits that are known."""

    git: Git
    catalogue: Catalogue
    tx: Transaction

    def recognise(self) -> set[int]:
        """Settle suspected swings that known culprits explain, and order the pairs needed for that.

        Returns the numbers of the comparisons whose swings wait for a pair.
        """
        waiting: set[int] = set()
        for swing in self.tx.swings.in_state("suspected"):
            comparison = self.tx.comparisons.get(swing.comparison)
            if swing.proof is not None or swing.source != "base" or comparison is None:
                continue
            row = row_of(self.tx.comparisons.rows(comparison.id), _key(swing))
            copies = self._known_within(comparison, row)
            answers = [(copy, self._answer(comparison, copy)) for copy in copies]
            if any(answer is None for _, answer in answers):
                waiting.add(comparison.id)
                continue
            still = [
                (copy, answer) for copy, answer in answers if answer and answer.answer == "still"
            ]
            if still and row is not None:
                for copy, answer in still:
                    self._note(comparison, copy, answer)
                self._settle(comparison, swing, row, still)
        return waiting

    def another_stretch(self, swing: Swing) -> bool:
        """Search the next stretch of the branch if pairs refuted an effect beyond known culprits
        in one stretch. Returns False if there is none."""
        comparison = self.tx.comparisons.get(swing.comparison)
        if swing.source != "expected" or comparison is None:
            return False
        row = row_of(self.tx.comparisons.rows(comparison.id), _key(swing))
        copies = self._known_within(comparison, row)
        still = [c for c in copies if (a := self._answer(comparison, c)) and a.answer == "still"]
        if not still:
            return False
        return self._narrow(comparison, swing, still, log_ratio(swing.change_pct))

    def _known_within(self, comparison: Comparison, row: ComparisonRow | None) -> list[CulpritCopy]:
        """Return the culprits of this branch's incidents that are between base and head of a tip's
        comparison and are known to change the row's metric."""
        if row is None or comparison.kind != "watch":
            return []
        copies = []
        for incident in self.tx.incidents.in_status(*_TOLD):
            effect = self._effect(incident, row.key)
            copy = self._copy(comparison, incident, effect) if effect is not None else None
            if copy is not None:
                copies.append(copy)
        return copies

    def _range(self, comparison: Comparison) -> tuple[str, str]:
        base, head = (self.tx.variants.get(n) for n in (comparison.base, comparison.head))
        return base.commit, head.commit

    def _copy(
        self, comparison: Comparison, incident: Incident, effect: tuple[float, float]
    ) -> CulpritCopy | None:
        sightings = [
            s for s in self.tx.sightings.of_incident(incident.id) if s.tree == comparison.tree
        ]
        for sighting in sightings:
            swings = self.tx.swings.of_bisection(sighting.bisection)
            if any(swing.comparison == comparison.id for swing in swings):
                return None  # the culprit was found in this tip
        bisection = self.tx.bisections.get(sightings[-1].bisection) if sightings else None
        if bisection is None:
            return None
        base, head = self._range(comparison)
        versions = reversed(still_slow(self.tx.patches, self.tx.incidents, incident, sightings))
        copies = (copy_within(self.git, v.commit, v.patch_id, base, head) for v in versions)
        commit = next((copy for copy in copies if copy is not None), None)
        if commit is None and not self._version_is_measured(comparison, incident):
            return None
        return CulpritCopy(
            incident=incident.id,
            bisection=bisection,
            commit=commit,
            effect=effect[0],
            error=effect[1],
        )

    def _version_is_measured(self, comparison: Comparison, incident: Incident) -> bool:
        """Return whether the tip's range has a new version of the patch whose measurement is in
        progress or about to begin."""
        base, head = self._range(comparison)
        if incident.fix_check is not None and waits_for_fix(self.tx.incidents, incident):
            commit = incident.fixed_by
        else:
            branch = self.tx.patches.branch(comparison.tree)
            open_ = incident.status == "open"  # new versions are measured for open incidents only
            new = unmeasured_version(self.tx, incident, comparison.tree, branch) if open_ else None
            commit = new[1].commit if new is not None else None
        return commit is not None and copy_within(self.git, commit, None, base, head) is not None

    def _effect(self, incident: Incident, key: tuple[str, str, str]) -> tuple[float, float] | None:
        """Return the effect of the culprit on a metric and its standard error (log ratios), from
        fresh boots of culprit and parent."""
        measured = [s.comparison for s in reversed(self.tx.sightings.of_incident(incident.id))]
        if incident.fix_check is not None:
            measured.insert(0, incident.fix_check)
        for number in dict.fromkeys(n for n in measured if n is not None):
            row = row_of(self.tx.comparisons.rows(number), key)
            if row is not None and row.changed and row.change_pct is not None:
                return log_ratio(row.change_pct), _error(row)
        return None

    def _answer(self, comparison: Comparison, copy: CulpritCopy) -> Recognition | None:
        """Return the answer of the pairs of the copy and its parent; None while there are none.

        Orders the first pair.
        """
        if copy.commit is None:
            return None
        key = f"still:{copy.incident}:{copy.commit}"
        pairs = self.tx.comparisons.of_request(key)
        if pairs is None:
            tree = self.tx.trees.get(comparison.tree)
            asked = self._ask(tree, copy, key)
            return None if asked else _unclear("git cannot read it")
        if pairs.open:
            return None
        if pairs.status != "done":
            return _unclear(f"{ids.show('comparison', pairs.id)} is {pairs.status}")
        return self.recognition(pairs)

    def _ask(self, tree: Tree, copy: CulpritCopy, key: str) -> bool:
        assert copy.commit is not None
        try:
            commits = (self.git.facts(copy.commit).parents[0], copy.commit)
            known = self.catalogue.testboxes.known(copy.bisection.testbox)
            built = on_testbox(self.catalogue.kconfigs, tree, known)
            base, head = (
                kept_variant(self.git, self.catalogue.kconfigs, self.tx.variants, built, commit)
                for commit in commits
            )
        except (GitError, IndexError, RequestError):
            return False
        self.tx.comparisons.add(
            NewComparison(
                kind="still",
                tree=tree.id,
                arms=base_and_head(base, head),
                boots=1,
                parts=[(copy.bisection.testbox, copy.bisection.spec)],
                request_key=key,
            )
        )
        return True

    def recognition(self, pairs: Comparison) -> Recognition:
        """Return the answer of a comparison of kind `still` so far.

        It depends only on the boots, not on when it is called.
        """
        incident = self.tx.incidents.get(int((pairs.request_key or "").split(":")[1]))
        images = all_images_of(
            self.tx.builds, [self.tx.variants.get(n) for n in (pairs.base, pairs.head)]
        )
        testbox, spec = pairs.parts[0]
        definition = self.catalogue.testboxes.known(testbox)
        sightings = [
            s
            for s in (self.tx.sightings.of_incident(incident.id) if incident is not None else [])
            if s.tree == pairs.tree
        ]
        bisection = self.tx.bisections.get(sightings[-1].bisection) if sightings else None
        known = self._effect(incident, bisection.key) if incident and bisection else None
        if bisection is None or known is None or images is None:
            return _unclear("a kernel is not built, or the incident has been split since")
        if images[0] == images[1]:
            return Recognition(answer="gone", probability=0.0, words="both images are identical")
        job = next(job for job in self.tx.specs.get(spec) if job.name == bisection.unit_job)
        rule = rule_of(definition, metric_of(self.catalogue.programs, bisection.metric), job)
        series = series_of(definition, f"c{pairs.id}")
        sides = [
            boots_of(self.tx.specs, self.tx.boots, image, testbox, spec, series, pairs.numbers)[
                0
            ].get((bisection.unit_job, bisection.metric), [])
            for image in images
        ]
        record = self.tx.noise.get(testbox, bisection.unit_job, bisection.metric)
        prior = pair_prior(record, definition.repeatable)
        unknown = math.sqrt(2.0) * math.hypot(NOISY.sd_boot, NOISY.sd_run / math.sqrt(job.runs))
        noise = PairNoise(
            sd=prior.sd if prior.known else unknown,
            df=prior.df if prior.known else 2.0 * NOISY.certainty,
            layout=layout_sd(record, rule.layout, definition.repeatable),
        )
        return recognise(plan.pair_differences(sides[0], sides[1], rule.form), known[0], noise)

    def _settle(
        self,
        comparison: Comparison,
        swing: Swing,
        row: ComparisonRow,
        still: Sequence[tuple[CulpritCopy, Recognition]],
    ) -> None:
        """Mark the swing as known if it is explained by culprits that are still effective.

        Otherwise prove the remaining effect, in the likelier stretch of the branch first.
        """
        copies = [copy for copy, _ in still]
        rest = log_ratio(swing.change_pct) - math.fsum(copy.effect for copy in copies)
        errors = [_error(row), *(copy.error for copy in copies)]
        names = ", ".join(ids.show("incident", copy.incident) for copy in copies)
        beyond = beyond_known(rest, errors, row.min_effect)
        if not beyond or not self._narrow(comparison, swing, copies, rest):
            reason = f"still there, {names}: {still[0][1].words}"
            self.tx.swings.weigh(
                swing.id, "known", {"answer": "known", "reason": reason, "left_pct": percent(rest)}
            )

    def _note(self, comparison: Comparison, copy: CulpritCopy, answer: Recognition) -> None:
        """Add an event to the history of the incident, once per tip."""
        tip, tree = self.tx.variants.get(comparison.head).commit, self.tx.trees.get(comparison.tree)
        last = self.tx.incidents.last_event(copy.incident, "still")
        if last is not None and last[1].get("tip") == tip:
            return
        pairs = self.tx.comparisons.of_request(f"still:{copy.incident}:{copy.commit}")
        assert pairs is not None
        self.tx.incidents.add_event(
            copy.incident,
            "still",
            OURSELVES,
            f"still there in {tree.name}, branch {tree.branch}, at {tip[:12]}: {answer.words}",
            {"tip": tip, "commit": copy.commit, "comparison": ids.show("comparison", pairs.id)},
        )

    def _narrow(
        self, comparison: Comparison, swing: Swing, copies: Sequence[CulpritCopy], effect: float
    ) -> bool:
        """Search for the remaining `effect` (log ratio) in the next stretch of the branch that was
        not searched yet. Returns False if there is none."""
        tree = built_as(self.tx.trees.get(comparison.tree), self.tx.variants.get(comparison.head))
        ends = [
            tuple(
                None
                if commit is None
                else variant_of(
                    self.git, self.catalogue.kconfigs, self.tx.variants, tree, commit
                ).id
                for commit in stretch
            )
            for stretch in self._stretches(comparison, copies)
        ]
        now = (swing.anchor, swing.upto)
        rest = ends[ends.index(now) + 1 :] if now in ends else ends
        if not rest:
            return False
        anchor, upto = rest[0]
        self.tx.swings.narrow(swing.id, anchor, upto, percent(effect))
        return True

    def _stretches(
        self, comparison: Comparison, copies: Sequence[CulpritCopy]
    ) -> list[tuple[str | None, str | None]]:
        """Return (first, last) commit of each stretch of the branch without a known culprit, most
        suspicious first. None stands for base and tip."""
        base, head = self._range(comparison)
        states = {each.patch.commit: each.state for each in self.tx.patches.branch(comparison.tree)}
        try:
            line = [base, *self.git.first_parents(base, head)]
            at = sorted({self._index(line, c.commit) for c in copies if c.commit})
            for commit in line:
                self.git.keep(commit)
        except GitError:
            return []
        edges = [0, *at]
        lasts = [*(index - 1 for index in at), len(line) - 1]
        parts = [(a, b) for a, b in zip(edges, lasts, strict=True) if b > a]
        mass = {
            (a, b): math.fsum(of_patch(states.get(commit, "new")) for commit in line[a + 1 : b + 1])
            for a, b in parts
        }
        parts.sort(key=lambda part: (-mass[part], part))
        return [(line[a] if a else None, line[b] if b < len(line) - 1 else None) for a, b in parts]

    def _index(self, line: Sequence[str], commit: str) -> int:
        """Return the index in `line` of the first commit that contains `commit`: itself, or the
        merge that brought it in."""
        low, high = 1, len(line) - 1
        while low < high:
            middle = (low + high) // 2
            if self.git.is_ancestor(commit, line[middle]):
                high = middle
            else:
                low = middle + 1
        return low


def _error(row: ComparisonRow) -> float:
    """Return the standard error of a row's effect as a log ratio; 0 if the row has no interval."""
    if row.interval_pct is None or min(row.interval_pct) <= -100.0:
        return 0.0
    low, high = sorted(row.interval_pct)
    return (log_ratio(high) - log_ratio(low)) / (2.0 * _Z95)


def _unclear(why: str) -> Recognition:
    return Recognition(answer="unclear", probability=0.0, words=why)


def _key(swing: Swing) -> tuple[str, str, str]:
    return swing.testbox, swing.unit_job, swing.metric
