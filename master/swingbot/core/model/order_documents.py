"""Orders, builds and boots. `documents.py` has the rules."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from swingbot.core.model.documents import UnitJob


class File(TypedDict):
    size: int  # bytes
    sha256: str  # digest of the content


class Dispatch(TypedDict):
    number: int
    created_at: str
    ended_at: str | None
    attempt: str  # id
    builder: str  # name of the Buildbot builder
    external_id: str  # external id of the buildset
    state: str  # `wanted`, `placed` or `over`
    bb_buildset: int | None  # Buildbot's number
    bb_request: int | None  # Buildbot's number
    bb_builder: int | None  # Buildbot's number
    bb_number: int | None  # Buildbot's number of the build
    result: str | None  # Buildbot's result
    placed_at: str | None  # time


class Attempt(TypedDict):
    number: int
    reason: str | None
    created_at: str
    ended_at: str | None
    files: dict[str, File]
    id: str  # such as `a12`
    state: str  # `running`, `ended` or `dead`
    # the document that came back: `jobs/schema/outcome-1.schema.json`
    outcome: dict[str, Any] | None
    late: Any  # an outcome that came too late to count
    ingested_at: str | None  # time
    dispatches: list[Dispatch]  # hand-overs to Buildbot


class KernelBuild(TypedDict):
    """In an order; `/kernel/<build key>.json` adds `variants`, `boots` and `same_image`."""

    build_key: str
    image_sha256: str | None
    files: dict[str, File]
    seconds: float
    order: str | None
    status: str  # `built` or `failed`
    compiler_version: str  # first line of `--version`
    sizes: dict[str, int] | None  # bytes by section
    errors: list[str]  # first errors of the compiler
    cached: bool  # taken from the worker's cache
    origin: str  # `measured`, `replayed` or `simulated`
    built_at: str  # time
    attempt: str | None  # id of the attempt
    variants: NotRequired[list[dict[str, Any]]]  # commits that give this build
    boots: NotRequired[list[dict[str, Any]]]  # the last 200 boots of its image
    same_image: NotRequired[list[str]]  # other keys that gave the same image


class Order(TypedDict):
    id: str
    build_key: str
    reason: str | None
    created_at: str
    ended_at: str | None
    seconds: float
    tree: str
    variant: str
    commit: str
    subject: str
    trust: str
    label: str | None
    kind: str  # `build` or `boot`
    key: str  # what makes two orders the same order
    testbox: str | None  # null for a build
    spec: str | None  # null for a build
    series: str | None  # null for a build
    purpose: str  # what the boot is for
    k: int | None  # null for a build
    state: str  # `waiting`, `ready`, `running`, `done`, `failed` or `cancelled`
    priority: int  # higher goes first
    budget: int  # attempts at most
    unit_jobs: list[UnitJob] | None  # null for a build
    boot: str | None  # id of the boot that came of it
    attempts: list[Attempt]  # its executions
    wanted_by: list[str]  # ids of comparisons, experiments and bisections
    kernel_build: KernelBuild | None  # what a build gave


class Run(TypedDict):
    unit_job: str
    reason: str | None
    number: int  # from 0
    status: str  # `ok`, `failed`, `missing`, `invalid` or `warmup`
    seconds: float | None  # duration
    samples: dict[str, list[float]]  # values by metric


class Fact(TypedDict):
    name: str
    value: Any  # null: not known
    unit: str | None  # unit of the value
    about: str  # what it means


class Boot(TypedDict):
    id: str
    testbox: str
    build_key: str
    image_sha256: str | None
    spec: str
    k: int
    outcome: str
    reason: str | None
    files: dict[str, File]
    seconds: float
    booted_at: str
    commit: str
    subject: str
    trust: str
    tree: str
    variant: str
    label: str | None
    order: str | None
    series: str  # whose boots are shared; empty: everyone's
    purpose: str  # what the boot is for
    facts: dict[str, Any]  # facts as they came ([facts](facts.md))
    origin: str  # `measured`, `replayed` or `simulated`
    runs: list[Run]  # its runs
    next: str | None  # `?after=` gives the next 500 samples; a metric's values may go on there
    sheet: dict[str, list[Fact]]  # the fact sheet by group
