"""Series of boots: boots are shared within a series, which is part of a boot's key."""

from __future__ import annotations

from swingbot.core.model.records import Comparison
from swingbot_jobs.testbox.definition import Testbox


def series_of(testbox: Testbox, asker: str) -> str:
    """Return the series: shared on a repeatable testbox, and the requester's own elsewhere.

    On a testbox that is not repeatable, base and head are measured together for each request.
    """
    return "" if testbox.repeatable else asker


def series_for(testbox: Testbox, comparison: Comparison) -> str:
    """Return the series for a comparison; boots of an anchor are never shared.

    An anchor tests whether the same boot gives the same result again.
    """
    asker = f"c{comparison.id}"
    return asker if comparison.kind == "anchor" else series_of(testbox, asker)
