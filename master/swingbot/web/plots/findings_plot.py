"""A history of numbers with what was found in it, as a picture: levels, steps, modes, a ramp."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from swingbot.core.stats.findings import Findings
from swingbot.core.stats.findings_text import step_size, step_words

from .drawing import PlotSubject
from .metric_plot import History, HistoryMark, HistorySeries, NoiseBand, metric_plot


def findings_plot(
    title: str, labels: Sequence[str], values: Sequence[float], findings: Findings
) -> str:
    """SVG of the values in their order; `labels` are their x."""
    subject = PlotSubject.of_file(title)
    places: list[dict[str, Any]] = [
        {"commit": label[:80], "subject": "", "author": "", "release": None, "variant": None}
        for label in labels
    ]
    history = History(
        subject=subject,
        columns=places,
        series=[HistorySeries(name="", boots=[[{"boot": None, "mean": one}] for one in values])],
        bands=[
            NoiseBand(
                first=one.first,
                last=one.last,
                level=one.mean,
                low=one.mean,
                high=one.mean,
                rise=one.rise,
            )
            for one in findings.levels
        ],
        marks=_marks([place["commit"] for place in places], findings),
        most=max(2, len(values)),
    )
    words = "In the order of the file; the value axis does not start at 0."
    return replace(metric_plot(history), words=words).picture(subject)


def _marks(labels: Sequence[str], findings: Findings) -> list[HistoryMark]:
    """Steps at their likeliest place, changes of modes, and the ramp."""
    said = [(one.at, step_size(one), step_words(one, labels)) for one in findings.changes]
    said += [(one.at, "modes", "the shares of the modes change") for one in findings.mode_changes]
    if findings.ramp is not None:
        words = f"ramp {step_size(findings.ramp)}"
        said.append((findings.ramp.at, words, words))
    return [
        HistoryMark(column=at, id=short, href="", words=words, kind="swing")
        for at, short, words in said
    ]
