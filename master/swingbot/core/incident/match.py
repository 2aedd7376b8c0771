"""Match a bisection's culprit with a known one: by its commit, or by its patch after a rebase."""

from __future__ import annotations

from collections.abc import Sequence

from swingbot.core.incident.model import Sighting


def known_as(
    tree: int, commit: str, patch_id: str | None, sightings: Sequence[Sighting]
) -> int | None:
    """The incident that `commit` of `tree` belongs to; None for a new culprit.

    The same commit of the same tree wins, since a person may have split copies of one patch. Then
    the same commit anywhere, then the same patch; of several incidents the oldest.
    """
    own = [s.incident for s in sightings if s.commit == commit and s.tree == tree]
    same = [s.incident for s in sightings if s.commit == commit]
    copies = [s.incident for s in sightings if patch_id and s.patch_id == patch_id]
    return next((min(known) for known in (own, same, copies) if known), None)
