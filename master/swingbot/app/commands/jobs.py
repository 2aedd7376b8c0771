"""`swingbot jobs expand`, `lint` and `cover`: expand and check job files, and what they run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import click

from swingbot.app.commands.context import (
    CommandContext,
    job_path,
    read_overrides,
    shipped_jobs,
    with_session_json,
)
from swingbot.app.commands.jobs_cover import jobs_cover
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.core.plan.longest_boot import too_long
from swingbot.core.raw.result_root import TOP, path_params, segment
from swingbot.core.text.numbers import count, duration
from swingbot.service.ports import RequestError
from swingbot_jobs import codec
from swingbot_jobs.contract.kconfig import Kconfigs, NoKconfig, load_kconfigs
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.expand import expand
from swingbot_jobs.language.job import JobError
from swingbot_jobs.language.job_files import read_job
from swingbot_jobs.language.kconfig_needs import kconfig_needs
from swingbot_jobs.language.lint import Lacking, LintFinding, LintResult, TooLong, lint, twins
from swingbot_jobs.language.program import Program, load_programs
from swingbot_jobs.language.values import NominalTestbox
from swingbot_jobs.terminal import say_json
from swingbot_jobs.testbox.boot_time import boot_seconds
from swingbot_jobs.testbox.definition import Testbox
from swingbot_jobs.testbox.file import load_all


@click.group()
def jobs() -> None:
    """Expand and check job files, and show what code they run."""


jobs.add_command(jobs_cover)


@jobs.command("expand")
@click.argument("file")
@click.option("--testbox", required=True, help="Testbox whose facts resolve percentages.")
@click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a key of the job file."
)
@with_session_json
def jobs_expand(
    session: CommandContext, file: str, testbox: str, overrides: tuple[str, ...], json_: bool
) -> None:
    """Print the unit jobs of job FILE on a testbox.

    Prints names, result roots and resolved values. FILE is a path or the name of a shipped job.
    {rootfs}, {kconfig}, {compiler}, {commit} and {run}
    in a result root are placeholders for values known only when a kernel is measured.

    \b
    Example:
      swingbot jobs expand vm-netperf.yaml --testbox vm-icount
    """
    [chosen] = _testboxes(session, [testbox])
    path = _job_file(session, file)
    unit_jobs = chosen.demanded(
        expand(
            read_job(path, _roots(session)),
            path.name,
            chosen,
            _programs(session),
            read_overrides(overrides),
        )
    )
    if json_:
        say_json(
            [
                codec.plain(job)
                | {
                    "result_root": _result_root(job, chosen.tbox_group),
                    "boot_seconds": boot_seconds(chosen, unit_jobs),
                }
                for job in unit_jobs
            ]
        )
        return
    for job in unit_jobs:
        click.echo(f"{job.name}\n    {_result_root(job, chosen.tbox_group)}\n    {_described(job)}")
    click.echo(
        f"{count(len(unit_jobs), 'unit job')} on {chosen.name},"
        f" {count(sum(len(job.numbers) for job in unit_jobs), 'run')} per boot,"
        f" about {duration(boot_seconds(chosen, unit_jobs))}"
    )


@jobs.command("lint")
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--testbox",
    "testboxes",
    multiple=True,
    help="Check for this testbox; may be repeated.",
)
@with_session_json
def jobs_lint(
    session: CommandContext, files: tuple[str, ...], testboxes: tuple[str, ...], json_: bool
) -> None:
    """Check job FILES (paths or names of shipped jobs).

    Exit status 2 if there are errors. Reports unknown keys, undeclared program options, invalid
    values, unit jobs with the same name, and percentages of CPUs that yield no thread. Without
    --testbox, percentages refer to a testbox with 100 CPUs.

    \b
    Example:
      swingbot jobs lint jobs/vm-*.yaml --testbox vm-tcg
    """
    chosen: Sequence[Testbox | NominalTestbox] = (
        _testboxes(session, testboxes) if testboxes else [NominalTestbox()]
    )
    programs, roots = _programs(session), _roots(session)
    paths = [_job_file(session, file) for file in files]
    known = KnownTestboxes(
        present={one.name: one for one in chosen if isinstance(one, Testbox)},
        boot_ceiling=session.settings.boot.deadline_seconds,
    )
    kconfigs = load_kconfigs(Path(session.settings.paths.workers) / "kconfig")
    lacking = partial(_lacking, kconfigs, session.settings.build.kconfig, programs)
    linted = [
        _linted(path, chosen, programs, roots, partial(too_long, known), lacking) for path in paths
    ]
    findings = [
        _named(finding, one.file_name) for one in linted for finding in one.findings
    ] + twins([(path.stem, str(path)) for path in paths])
    if json_:
        say_json(
            {
                "findings": [
                    {"severity": finding.severity, "text": finding.text} for finding in findings
                ],
                "unit_jobs": {
                    str(file): dict(one.unit_jobs) for file, one in zip(files, linted, strict=True)
                },
                "boot_seconds": {
                    str(file): dict(one.boot_seconds)
                    for file, one in zip(files, linted, strict=True)
                },
            }
        )
    else:
        _say(linted, findings)
    if any(finding.severity == "error" for finding in findings):
        raise SystemExit(2)


def _linted(
    file: Path,
    testboxes: Sequence[Testbox | NominalTestbox],
    programs: dict[str, Program],
    roots: Sequence[Path],
    is_too_long: TooLong,
    lacking: Lacking,
) -> LintResult:
    try:
        return lint(read_job(file, roots), file.name, testboxes, programs, is_too_long, lacking)
    except JobError as error:
        return LintResult(file.name, {}, (LintFinding("error", str(error)),))


def _lacking(
    kconfigs: Kconfigs,
    of_new_trees: str,
    programs: Mapping[str, Program],
    testbox: Testbox,
    unit_jobs: Sequence[UnitJob],
) -> str | None:
    """Return what kernels of new trees lack there for these unit jobs. Raises RequestError."""
    try:
        name = kconfigs.on(testbox.kconfig, of_new_trees)
        return kconfigs.refusal(name, kconfig_needs(unit_jobs, programs))
    except NoKconfig as error:
        raise RequestError(f"testbox {testbox.name}: {error}") from None


def _named(finding: LintFinding, file_name: str) -> LintFinding:
    """Prefix the finding with the job file if it refers to an included file."""
    return (
        finding
        if finding.text.startswith(f"{file_name}:")
        else LintFinding(finding.severity, f"{file_name}: {finding.text}")
    )


def _say(linted: Sequence[LintResult], findings: Sequence[LintFinding]) -> None:
    for finding in findings:
        click.echo(f"{finding.severity}: {finding.text}")
    good = [one for one in linted if one.good]
    for one in good:
        counts = [
            f"{count(jobs, 'unit job')} on {testbox}" + _about(one.boot_seconds.get(testbox))
            for testbox, jobs in one.unit_jobs.items()
        ]
        click.echo(f"{one.file_name}: {', '.join(counts)}")
    if len(good) < len(linted):
        click.echo(f"{len(linted) - len(good)} of {len(linted)} job files have errors")


def _about(seconds: float | None) -> str:
    return "" if seconds is None else f", about {duration(seconds)} a boot"


def _job_file(session: CommandContext, name: str) -> Path:
    """Path of a job file. Raises RequestError if it does not exist."""
    path = job_path(name, session.settings.paths.jobs)
    if not path.is_file():
        known = shipped_jobs(session.settings.paths.jobs)
        raise RequestError(f"job file {name} does not exist; give a path or one of {known}")
    return path


def _testboxes(session: CommandContext, names: Sequence[str]) -> list[Testbox]:
    known = load_all(Path(session.settings.paths.workers) / "testboxes")
    missing = [name for name in names if name not in known]
    if missing:
        raise RequestError(
            f"testbox {missing[0]!r} does not exist; the testboxes are {', '.join(sorted(known))}"
        )
    return [known[name] for name in names]


def _programs(session: CommandContext) -> dict[str, Program]:
    return load_programs(Path(session.settings.paths.jobs) / "programs")


def _roots(session: CommandContext) -> tuple[Path, ...]:
    return (Path(session.settings.paths.jobs),)


def _described(job: UnitJob) -> str:
    """Describe a unit job, such as `netperf, 2 runs after 1 warm-up, 1 with vmstat: ip=ipv4`."""
    runs = count(job.runs, "run") + (f" after {job.warmup} warm-up" if job.warmup else "")
    monitored = "".join(f", 1 with {monitor}" for monitor in job.monitors)
    conditions = [
        *(f"{fact} is {value}" for fact, value in job.demand.items()),
        *([f"kernel_cmdline {job.cmdline}"] if job.cmdline else []),
        *(f"sets {name} to {value}" for name, value in job.sysctl.items()),
    ]
    suffix = "".join(f"; {condition}" for condition in conditions)
    params = " ".join(f"{key}={value}" for key, value in job.params.items())
    return f"{job.program}, {runs}{monitored}{suffix}: {params}"


def _result_root(job: UnitJob, tbox_group: str) -> str:
    """Result root in LKP's format, with placeholders for values known only at measurement."""
    known = map(segment, (job.program, path_params(job.program, job.name), tbox_group))
    return "/".join((TOP, *known, "{rootfs}", "{kconfig}", "{compiler}", "{commit}", "{run}"))
