"""Checks of a job file: all errors at once, and remarks on differences that LKP users may not
expect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language import boot_settings
from swingbot_jobs.language.expand import axes_of, expand_documents
from swingbot_jobs.language.job import Document, JobError, read_job
from swingbot_jobs.language.program import Program
from swingbot_jobs.language.values import JobPoint, TestboxTraits
from swingbot_jobs.testbox.boot_time import boot_seconds
from swingbot_jobs.testbox.definition import Testbox

Severity = Literal["error", "remark"]
# Returns why a boot of so many seconds may not be requested on the testbox of this name, or None.
TooLong = Callable[[str, float], str | None]
# Returns which options a boot of these unit jobs needs and kernels of the testbox lack, or None.
Lacking = Callable[[Testbox, Sequence[UnitJob]], str | None]


@dataclass(frozen=True, slots=True, order=True)
class LintFinding:
    """A finding about a job file; `text` begins with `file:line:`.

    A remark does not prevent the job from running.
    """

    severity: Severity
    text: str


@dataclass(frozen=True, slots=True)
class LintResult:
    """The result of checking a job file: its number of unit jobs and the seconds of a boot on each
    suitable testbox, and the findings. A nominal testbox has no boots.
    """

    file_name: str
    unit_jobs: Mapping[str, int]
    findings: tuple[LintFinding, ...]
    boot_seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        return all(finding.severity == "remark" for finding in self.findings)


def lint(
    text: str,
    file_name: str,
    testboxes: Sequence[TestboxTraits],
    programs: Mapping[str, Program],
    too_long: TooLong = lambda name, seconds: None,
    lacking: Lacking = lambda testbox, unit_jobs: None,
) -> LintResult:
    """Check a job file as expanded on each of `testboxes`.

    Raises nothing: every error is a finding. A job that fits one of the testboxes may stay, and a
    tree may add what a kernel lacks, so what is refused on another is a remark.
    """
    documents, problems = read_job(text, file_name, programs)
    for document in documents:
        problems += boot_settings.problems(document.ours)
    counts: dict[str, int] = {}
    refused: list[LintFinding] = []
    seconds: dict[str, float] = {}
    for testbox in testboxes:
        errors = [
            problem
            for document in documents
            for problem in _values(document, programs[document.program], testbox)
        ]
        if not errors:
            try:
                unit_jobs = expand_documents(documents, testbox, programs)
                counts[testbox.name] = len(unit_jobs)
                if isinstance(testbox, Testbox):
                    seconds[testbox.name] = boot_seconds(testbox, unit_jobs)
                    refused += _too_long(documents[0], testbox.name, seconds, too_long)
                    if why := lacking(testbox, unit_jobs):
                        text = (
                            f"{documents[0].where}: requests on {testbox.name} are refused: {why}"
                        )
                        refused.append(LintFinding("remark", text))
            except JobError as error:
                errors = [error]
        problems += errors
    findings = [LintFinding("error", str(problem)) for problem in problems]
    findings += [
        LintFinding("remark", remark)
        for document in documents
        for remark in _remarks(document, programs[document.program])
    ]
    findings += refused
    return LintResult(
        file_name,
        {} if problems and not documents else counts,
        tuple(dict.fromkeys(findings)),
        seconds,
    )


def _too_long(
    document: Document, testbox: str, seconds: Mapping[str, float], too_long: TooLong
) -> Iterator[LintFinding]:
    if why := too_long(testbox, seconds[testbox]):
        yield LintFinding(
            "remark",
            f"{document.where}: a boot needs about {seconds[testbox] / 60:.0f} minutes on"
            f" {testbox}, so requests there are refused: {why}",
        )


def twins(files: Sequence[tuple[str, str]]) -> list[LintFinding]:
    """Check (job name, path) of several files: files with equal names would give their results
    equal names too.
    """
    first: dict[str, str] = {}
    twice = [
        (name, path, first[name]) for name, path in files if first.setdefault(name, path) != path
    ]
    return [
        LintFinding(
            "error",
            (
                f"{path}:1: has the same job name as {other}, {name}, and their results would"
                " have the same names too; rename one"
            ),
        )
        for name, path, other in twice
    ]


def _values(document: Document, program: Program, testbox: TestboxTraits) -> Iterator[JobError]:
    """Yield every value that is invalid on this testbox, not only the first:
    each value in turn, with the first of the other axes.
    """
    axes = axes_of(document)
    first = {key: items[0] for key, items in axes.items() if items}
    reported: set[str] = set()
    for key, items in axes.items():
        for item in items:
            try:
                JobPoint(document, program, testbox, {**first, key: item}).check(key)
            except JobError as error:
                if str(error) not in reported:
                    yield error
                reported.add(str(error))


def _remarks(document: Document, program: Program) -> Iterator[str]:
    for parameter in program.parameters.values():
        if parameter.lkp_default and parameter.name not in document.settings:
            yield (
                f"{document.where}: {parameter.name} is not set, so {program.name} runs with its"
                f" default here; {parameter.lkp_default}"
            )
