"""What a table of existing boots lacks, and what filling it would take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Any, Final

from swingbot.core.results.existing_boots import Document, MeasuredPlace
from swingbot.core.text.numbers import count

USUAL_BOOTS: Final = 5
_NONE_UP: Final = "none came up"
SUGGESTED_BOOTS: Final = 50  # per kernel, at most


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A kernel without results of unit jobs that others ran on a testbox.

    `boots` of it would fill the gap, with as many of the reference if the testbox compares only
    what it boots together. `never`: why no boot can fill it. Times in seconds; None: not known.
    """

    kernel: int
    testbox: str
    unit_jobs: tuple[str, ...]
    jobs: tuple[str, ...]  # job files that have them
    why: str
    boots: int
    together: int  # boots of the reference that are needed too
    never: bool
    seconds: float | None
    build_seconds: float | None  # 0: the kernel is built


@dataclass(frozen=True, slots=True, kw_only=True)
class FillingCosts:
    """What requests may name, and usual durations in seconds; None: not known."""

    job_files: Sequence[str]
    boot_seconds: Mapping[tuple[str, str], float | None]  # by (testbox, spec)
    build_seconds: float | None


def gaps(
    document: Document,
    kernels: Sequence[Mapping[str, Any]],
    places: Sequence[MeasuredPlace],
    costs: FillingCosts,
) -> list[Gap]:
    """Return what is missing for a table of all `kernels` at all `places`, kernel by kernel."""
    missing: dict[tuple[int, str, str], list[MeasuredPlace]] = {}
    for index in range(len(kernels)):
        for place in places:
            if index not in place.boots:
                why = _why(document, kernels[index], index, place)
                missing.setdefault((index, place.testbox, why), []).append(place)
    return [
        _gap(document, kernels[index], index, why, own, costs)
        for (index, _, why), own in missing.items()
    ]


def _why(document: Document, kernel: Mapping[str, Any], index: int, place: MeasuredPlace) -> str:
    if kernel["build"] == "failed":
        return f"the kernel does not build: {kernel['error'] or 'see build.log'}"
    if index in place.left_out:
        return place.left_out[index]
    own = [
        boot
        for boot in document["boots"]
        if (boot["kernel"], boot["testbox"]) == (index, place.testbox)
        and any(job["name"] == place.job.name for job in document["specs"][boot["spec"]])
    ]
    if not own:
        return "never booted there with this test"
    lost = [boot for boot in own if boot["outcome"] != "up"]
    if len(lost) == len(own):
        words = lost[0]["reason"] or "no reason known"
        return f"{_NONE_UP} of its {count(len(own), 'boot')} there: {lost[0]['outcome']}, {words}"
    return f"no value from its {count(len(own), 'boot')} there"


def _gap(
    document: Document,
    kernel: Mapping[str, Any],
    index: int,
    why: str,
    places: Sequence[MeasuredPlace],
    costs: FillingCosts,
) -> Gap:
    testbox = places[0].testbox
    facts = document["testboxes"][testbox]
    gone = facts["state"] == "gone"
    never = gone or kernel["build"] == "failed" or why.startswith(_NONE_UP)
    counts = [len(own) for place in places for own in place.boots.values()]
    boots = min(SUGGESTED_BOOTS, median_low(counts)) if counts else USUAL_BOOTS
    together = 0 if index != 0 and facts["repeatable"] else boots
    each = [costs.boot_seconds.get((testbox, spec)) for spec in {one.spec for one in places}]
    known = [one for one in each if one is not None]
    jobs = [job_file_of(place.job.name, costs.job_files) for place in places]
    return Gap(
        kernel=index,
        testbox=testbox,
        unit_jobs=tuple(place.job.name for place in places),
        jobs=tuple(dict.fromkeys(job for job in jobs if job)),
        why=why + (f"; {gone_words(testbox, facts['others'])}" if gone else ""),
        boots=0 if never else boots,
        together=0 if never else together,
        never=never,
        seconds=None if never or len(known) < len(each) else (boots + together) * sum(known),
        build_seconds=0.0 if kernel["build"] else costs.build_seconds,
    )


def gone_words(testbox: str, others: Sequence[str]) -> str:
    """What became of the results of a testbox that is no longer in the lab."""
    renamed = f", and if it was renamed, new ones are under {' or '.join(others)}" if others else ""
    return f"testbox {testbox} is no longer in the lab; its results stay under that name{renamed}"


def job_file_of(unit_job: str, job_files: Sequence[str]) -> str | None:
    """The job file that gives a unit job: its name begins with that of the file."""
    stems = {file.rsplit("/", 1)[-1].removesuffix(".yaml"): file for file in job_files}
    fitting = [stem for stem in stems if unit_job == stem or unit_job.startswith(f"{stem}-")]
    return stems[max(fitting, key=len)] if fitting else None
