"""Whose boots are shared: the series of a boot is part of its key, and boots of another series are other boots."""

from __future__ import annotations

from swingbot.core.model.records import Comparison
from swingbot_jobs.testbox.definition import Testbox


def series_of(box: Testbox, asker: str) -> str:
    """Boots of a repeatable testbox are shared by all; on any other box each asker measures base and head afresh, side by side."""
    return "" if box.repeatable else asker


def series_for(box: Testbox, comparison: Comparison) -> str:
    """As `series_of`; boots of an anchor are never shared: that the same boot gives the same again is what they are for."""
    asker = f"c{comparison.id}"
    return asker if comparison.kind == "anchor" else series_of(box, asker)
