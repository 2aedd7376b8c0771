"""What is wrong with a job file, all of it at once; and what someone who comes from LKP would not expect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from swingbot_jobs.language import boot_settings
from swingbot_jobs.language.expand import axes_of, expand_documents
from swingbot_jobs.language.job import Document, JobError, read_job
from swingbot_jobs.language.lkp_keys import OTHER_DEFAULTS
from swingbot_jobs.language.program import Program
from swingbot_jobs.language.values import JobPoint, TestboxTraits

Severity = Literal["error", "remark"]


@dataclass(frozen=True, slots=True, order=True)
class LintFinding:
    """One thing about a job file; `text` begins with `file:line:`. A remark keeps nothing from running."""

    severity: Severity
    text: str


@dataclass(frozen=True, slots=True)
class LintResult:
    """A job file after the look at it: how many unit jobs it has on each testbox that it can run on, and what was found."""

    file_name: str
    unit_jobs: Mapping[str, int]
    findings: tuple[LintFinding, ...]

    @property
    def good(self) -> bool:
        return all(finding.severity == "remark" for finding in self.findings)


def lint(
    text: str, file_name: str, testboxes: Sequence[TestboxTraits], programs: Mapping[str, Program]
) -> LintResult:
    """Look at a job file as it would be on each of `testboxes`. Raises nothing: whatever is wrong is a finding."""
    documents, problems = read_job(text, file_name, programs)
    for document in documents:
        problems += boot_settings.problems(document.ours)
    counts: dict[str, int] = {}
    for box in testboxes:
        found = [
            problem
            for document in documents
            for problem in _values(document, programs[document.program], box)
        ]
        if not found:
            try:
                counts[box.name] = len(expand_documents(documents, box, programs))
            except JobError as error:
                found = [error]
        problems += found
    findings = [LintFinding("error", str(problem)) for problem in problems]
    findings += [
        LintFinding("remark", remark) for document in documents for remark in _remarks(document)
    ]
    return LintResult(
        file_name, {} if problems and not documents else counts, tuple(dict.fromkeys(findings))
    )


def twins(files: Sequence[tuple[str, str]]) -> list[LintFinding]:
    """(job name, path) of several files: two of one name give their results one name too."""
    first: dict[str, str] = {}
    twice = [
        (name, path, first[name]) for name, path in files if first.setdefault(name, path) != path
    ]
    return [
        LintFinding(
            "error", f"{path}:1: is called {name} as {other} is, and so are its results; rename one"
        )
        for name, path, other in twice
    ]


def _values(document: Document, program: Program, box: TestboxTraits) -> Iterator[JobError]:
    """Every value that can't be on this box, not the first one alone: each value in turn, with the first of the other axes."""
    axes = axes_of(document)
    first = {key: items[0] for key, items in axes.items() if items}
    told: set[str] = set()
    for key, items in axes.items():
        for item in items:
            try:
                JobPoint(document, program, box, {**first, key: item}).check(key)
            except JobError as error:
                if str(error) not in told:
                    yield error
                told.add(str(error))


def _remarks(document: Document) -> Iterator[str]:
    for (program, parameter), otherwise in OTHER_DEFAULTS.items():
        if document.program == program and parameter not in document.settings:
            yield f"{document.where}: {parameter} is not set, so {program} runs with its default here; {otherwise}"
