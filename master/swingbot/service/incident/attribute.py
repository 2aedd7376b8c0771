"""Compare each culprit of a watched branch with its parent, using every job of its tree; a culprit
bisected by hand only when proof is requested.

The report prints that table, and it shows which other swings the same commit explains. If another
bisection finds the same culprit, it is measured again only if that table lacks the row: on another
testbox, in another branch, with another job.
"""

from __future__ import annotations

from collections.abc import Sequence

from swingbot.core.incident.model import Sighting
from swingbot.core.model.comparison_row import ComparisonRow, row_at
from swingbot.core.model.records import Bisection, NewComparison, Tree, base_and_head
from swingbot.core.plan import swings as plan
from swingbot.core.plan.boot_numbers import BootPurpose
from swingbot.core.report.claim import claim_of
from swingbot.core.thresholds import ATTRIBUTE_BOOTS, ATTRIBUTE_SPREAD_BOOTS
from swingbot.service.kernel.variants import built_as, on_testbox, variant_of
from swingbot.service.ports import Catalogue, Git, RequestError, Transaction
from swingbot.service.ports.bisections import Bisections
from swingbot.service.ports.comparisons import Comparisons
from swingbot.service.ports.sightings import Sightings
from swingbot.service.ports.specs import Specs
from swingbot.service.watch.resolve_jobs import resolve_parts


def attribute_incidents(git: Git, catalogue: Catalogue, tx: Transaction) -> None:
    """Open the comparison of each new culprit with its parent."""
    for sighting in tx.sightings.to_attribute():
        known = _measured(tx.specs, tx.bisections, tx.comparisons, tx.sightings, sighting)
        if known is not None and known.comparison is not None:
            tx.sightings.set_comparison(sighting.id, known.comparison, known.report)
        else:
            measure(git, catalogue, tx, sighting)


def _measured(
    specs: Specs,
    bisections: Bisections,
    comparisons: Comparisons,
    sightings: Sightings,
    sighting: Sighting,
) -> Sighting | None:
    """Return the sighting of the same kernel whose comparison has (or will have) the metric of this
    one; None if there is none.
    """
    bisection = bisections.get(sighting.bisection)
    assert bisection is not None
    for other in sightings.of_incident(sighting.incident):
        if other.culprit != sighting.culprit or other.comparison is None:
            continue
        parts = _parts(comparisons, other.comparison)
        if any(
            testbox == bisection.testbox
            and any(job.name == bisection.unit_job for job in specs.get(spec))
            for testbox, spec in parts
        ):
            return other
    return None


def measure(git: Git, catalogue: Catalogue, tx: Transaction, sighting: Sighting) -> None:
    """Open the comparison of a culprit with its parent."""
    tree = tx.trees.get(sighting.tree)
    built = built_as(tree, tx.variants.get(sighting.culprit))
    conclusion = tx.bisections.conclusion(sighting.bisection)
    culprit, spread = conclusion.naming(sighting.commit), conclusion.of_spread
    first = all(other.comparison is None for other in tx.sightings.of_incident(sighting.incident))
    comparison = tx.comparisons.add(
        NewComparison(
            kind="attribute",
            tree=tree.id,
            arms=base_and_head(
                variant_of(git, catalogue.kconfigs, tx.variants, built, culprit.parent).id,
                sighting.culprit,
            ),
            boots=ATTRIBUTE_SPREAD_BOOTS if spread else ATTRIBUTE_BOOTS,
            parts=_own_part(tx.bisections, sighting.bisection)
            if spread
            else _alike(catalogue, tree, built, _where(catalogue, tx, tree, sighting.bisection))
            or _own_part(tx.bisections, sighting.bisection),
            purpose=BootPurpose.FRESH,
            request_key=f"incident:{sighting.incident}" if first else f"sighting:{sighting.id}",
        )
    )
    tx.sightings.set_comparison(sighting.id, comparison)


def _own_part(bisections: Bisections, number: int) -> list[tuple[str, str]]:
    """Return the (testbox, spec) of the bisection: many boots, so one unit job on one testbox."""
    bisection = bisections.get(number)
    assert bisection is not None
    return [(bisection.testbox, bisection.spec)]


def _alike(
    catalogue: Catalogue, tree: Tree, built: Tree, parts: Sequence[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Return the `parts` whose testboxes boot kernels of the configuration of `built`."""

    def kconfig(testbox: str) -> str | None:
        try:
            return on_testbox(catalogue.kconfigs, tree, catalogue.testboxes.known(testbox)).kconfig
        except RequestError:
            return None

    return [part for part in parts if kconfig(part[0]) == built.kconfig]


def _where(catalogue: Catalogue, tx: Transaction, tree: Tree, number: int) -> list[tuple[str, str]]:
    """Return the (testbox, spec) pairs of the watch comparisons that saw the swings; without any,
    the bisection's own and those of its tree's jobs.
    """
    seen = {
        part
        for swing in tx.swings.of_bisection(number)
        for part in _parts(tx.comparisons, swing.comparison)
    }
    if seen:
        return sorted(seen)
    bisection = tx.bisections.get(number)
    assert bisection is not None
    try:
        watched = resolve_parts(
            catalogue.programs,
            catalogue.testboxes,
            tx.specs,
            tree.job_files,
            tree.testboxes,
            {},
            tree.trust,
        )
    except RequestError:
        watched = []  # a job or testbox of the tree has changed; the bisection's own are enough
    specs = [spec for testbox, spec in watched if testbox == bisection.testbox]
    own = any(job.name == bisection.unit_job for spec in specs for job in tx.specs.get(spec))
    return watched if own else [*watched, (bisection.testbox, bisection.spec)]


def _parts(comparisons: Comparisons, comparison: int) -> tuple[tuple[str, str], ...]:
    stored = comparisons.get(comparison)
    assert stored is not None
    return stored.parts


def explain_swings(tx: Transaction) -> None:
    """Close open swings that a culprit of the same comparison explains."""
    for sighting in tx.sightings.to_tell():
        assert sighting.comparison is not None
        rows = tx.comparisons.rows(sighting.comparison)
        looked_at = {swing.comparison for swing in tx.swings.of_bisection(sighting.bisection)}
        for swing in tx.swings.in_state("open", "suspected"):
            if swing.comparison in looked_at and plan.explains(
                row_at(rows, (swing.testbox, swing.unit_job, swing.metric)), swing.change_pct
            ):
                tx.swings.set_state(swing.id, "explained", sighting.bisection)


def change_of(
    bisections: Bisections, comparisons: Comparisons, sighting: Sighting, bisection: Bisection
) -> float:
    """Return the change, in percent, of the bisection's metric by the culprit: from fresh boots if
    there are any, else from the bisection's conclusion.
    """
    row = headline_of(comparisons, sighting, bisection)
    if row is not None and row.change_pct is not None and row.changed:
        return row.change_pct
    change = bisections.conclusion(bisection.id).naming(sighting.commit).change_pct
    assert change is not None  # no culprit is named without one
    return change


def headline_of(
    comparisons: Comparisons, sighting: Sighting, bisection: Bisection
) -> ComparisonRow | None:
    """Return the row of the bisection's metric in the comparison of parent and culprit."""
    if sighting.comparison is None:
        return None
    return row_at(comparisons.rows(sighting.comparison), bisection.key)


def seen_elsewhere(tx: Transaction, incident: int, tree: int) -> str:
    """Return the other branches in which the incident's commit, or a copy of it, shows the change,
    as text for the first mail; empty if there are none.
    """
    places = []
    for sighting in tx.sightings.of_incident(incident):
        bisection = tx.bisections.get(sighting.bisection)
        row = (
            headline_of(tx.comparisons, sighting, bisection)
            if bisection is not None and sighting.tree != tree
            else None
        )
        if row is not None and (row.changed or row.spread_changed):
            place = tx.trees.get(sighting.tree)
            places.append(
                f"{place.name}, branch {place.branch} ({sighting.commit[:12]}: {row.metric} "
                f"{claim_of(row)})"
            )
    return "; ".join(dict.fromkeys(places))
