"""How far a table or bisection is, in a few words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from swingbot.core.model.answer_documents import ProgressOfARequest
from swingbot.core.model.statuses import OVER, search_over


def progress_of_table(table: Mapping[str, Any]) -> ProgressOfARequest:
    done = table["progress"]
    words = (
        f"{done['builds']}/{done['builds_total']} kernels,"
        f" {done['boots']}/{done['boots_total']} boots"
    )
    return _progress(table, words, over=table["status"] in OVER)


def progress_of_bisection(bisection: Mapping[str, Any]) -> ProgressOfARequest:
    phase = bisection.get("phase") or "start"
    words = f"{phase}: {bisection['boots']} boots, {_belief(bisection)}"
    over = search_over(bisection["status"], (one["over"] for one in bisection["branches"]))
    return _progress(bisection, words, over=over)


def _progress(document: Mapping[str, Any], words: str, *, over: bool) -> ProgressOfARequest:
    return {
        "id": document["id"],
        "status": document["status"],
        "over": over,
        "words": words,
        "waits": document["waits"],
        "eta_seconds": document.get("eta_seconds"),
        "eta_note": document.get("eta_note"),
    }


def _belief(bisection: Mapping[str, Any]) -> str:
    """Most likely culprit, and the remaining uncertainty in bits."""
    searched = [branch["words"] for branch in bisection["branches"] if not branch["over"]]
    if searched:
        return str(searched[0])
    best = max(bisection["candidates"], key=lambda c: c["probability"] or 0.0, default=None)
    if best is None or not best["probability"]:
        return "no suspect yet"
    progress = bisection.get("progress")
    bits = (
        f", {progress['bits_left']:.1f} of {progress['bits_at_start']:.1f} bits of uncertainty left"
        if progress
        else ""
    )
    return f"first suspect {best['commit'][:12]} with {100 * best['probability']:.0f} %{bits}"
