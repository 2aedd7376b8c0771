"""What commands of the operator print. `documents.py` has the rules."""

from __future__ import annotations

from typing import Any, TypedDict


class Reparse(TypedDict):
    program: str | None  # null: all
    dry_run: bool  # nothing was changed
    boots: int
    runs_read: int  # runs that were read
    runs_current: int  # runs that were current
    runs_changed: int  # runs with other values
    runs_new: int  # runs that had none
    boots_unreadable: int  # boots that cannot be read
    metrics: list[Any]  # what changed, by metric
    statuses: list[Any]  # what changed, by status
    changes: list[Any]  # what changed, by run
    changes_left_out: int  # further ones
    unreadable: list[Any]  # these boots, with the reason
    comparisons: list[str]  # ids whose verdicts rest on old values
    bisections: list[str]  # the same


class ClassOfFiles(TypedDict):
    days: float  # days they are kept; 0: forever
    files: int  # number
    bytes: int  # their size
    oldest: str | None  # date
    goes_files: int  # files that may go
    goes_bytes: int  # their size
    stays: dict[str, int]  # files that stay, by reason


class Retention(TypedDict):
    dry_run: bool  # nothing was deleted
    classes: dict[str, ClassOfFiles]  # by class
    names: int  # names of metrics that expired
    pruned_before: int  # files pruned earlier
    freed_bytes: int  # bytes that go or went


class Removal(TypedDict):
    id: str
    dry_run: bool  # nothing was removed
    counts: dict[str, int]  # rows and files, by kind
    open: list[str]  # ids under way because of it
    counted_by: list[str]  # what stays and counts it
    shown_on: list[str]  # what shows it as removed
    freed_bytes: int  # bytes that go or went
    objects: int  # git objects


class Settings(TypedDict):
    state: str  # state directory
    cache: str  # cache directory
    settings: list[dict[str, Any]]  # `key`, `value`, `source`, `doc` of each


class ListedFact(TypedDict):
    name: str
    group: str  # where sheets list it
    about: str  # what it means
    compare: str  # how two sides are compared
    unit: str | None  # unit of the value
    files: list[str]  # where it is read
    by: str | None  # who notes it
    form: str | None  # how it is read
    key: str | None  # its key there
    of: str | None  # what it belongs to
    again: bool  # read again at the end
    set: bool  # the runner can set it
    values: dict[str, Any]  # words for its values
    lkp: str | None  # LKP's key


class NewToken(TypedDict):
    id: int  # number
    who: str  # person
    role: str  # `reader`, `submitter`, `moderator` or `operator`
    trees: list[str] | None  # whose tables it may request; null: all
    groups: list[str] | None  # testbox groups that it may see; null: all
    levels: bool  # false: of these it sees changes in percent only
    vouches: bool  # its own commits are trusted while it is valid
    mail: str | None  # address for results
    expires_at: str | None  # time; null: never
    token: str  # shown once


class Token(TypedDict):
    id: int  # number
    who: str  # person
    role: str  # its role
    key: bool  # the key that `swingbot key` prints
    trees: list[str] | None  # whose tables it may request; null: all
    groups: list[str] | None  # testbox groups that it may see; null: all
    levels: bool  # false: of these it sees changes in percent only
    vouches: bool  # its own commits are trusted while it is valid
    mail: str | None  # address for results
    note: str | None  # its purpose
    made_by: str  # who made it
    made_at: str  # time
    expires_at: str | None  # time
    revoked_at: str | None  # time
    revoked_by: str | None  # person
    used_at: str | None  # time of its last use, to the minute
    good: bool  # it opens something


class Samples(TypedDict):
    program: str  # name of the program
    samples: dict[str, list[float]]  # values by metric


class Lint(TypedDict):
    findings: list[dict[str, Any]]  # what is wrong, by file and line
    unit_jobs: dict[str, Any]  # unit jobs of each file
    boot_seconds: dict[str, Any]  # seconds of a boot of each


class CoveredFunction(TypedDict):
    name: str
    source: str  # path of the source
    seen: str  # `counted`, or why its calls are not known: `no hook`, `namesakes`, `not asked`
    calls: list[dict[str, Any]]  # `unit_job`, `testbox`, `calls` in one run; 0: it was never called


class Cover(TypedDict):
    tree: str
    commit: str | None  # the commit that was asked about
    path: str | None  # else the source
    kernel: dict[str, str]  # whose functions they are: `commit`, `kconfig`, `build_key`
    jobs: list[dict[str, Any]]  # `unit_job`, `testbox`, `boot`, `functions` called, their `calls`
    functions: list[CoveredFunction]  # of the source, or those that the commit changes
    left_out: list[dict[str, Any]]  # `what` has no function here, and the `reason`
