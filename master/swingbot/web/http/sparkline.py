"""A history as a line in a cell of a table."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

_WIDTH, _HEIGHT, _EDGE = 140.0, 26.0, 3.0  # pixels


def sparkline(levels: Sequence[float]) -> Markup:
    """Return an inline SVG of levels in order, the last one marked; empty for less than two."""
    if len(levels) < 2:
        return Markup("")
    low, high = min(levels), max(levels)
    span = (high - low) or 1.0
    step = (_WIDTH - 2 * _EDGE) / (len(levels) - 1)
    points = [
        (_EDGE + at * step, _HEIGHT - _EDGE - (level - low) / span * (_HEIGHT - 2 * _EDGE))
        for at, level in enumerate(levels)
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    x, y = points[-1]
    words = f"{len(levels)} tips between {low:.5g} and {high:.5g}, the last at {levels[-1]:.5g}"
    return Markup(
        '<svg class="spark" width="{0:.0f}" height="{1:.0f}" viewBox="0 0 {0:.0f} {1:.0f}"'
        ' role="img"><title>{2}</title><polyline points="{3}"/>'
        '<circle cx="{4:.1f}" cy="{5:.1f}" r="2.5"/></svg>'
    ).format(_WIDTH, _HEIGHT, words, line, x, y)
