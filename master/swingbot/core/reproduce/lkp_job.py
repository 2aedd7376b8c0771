"""A unit job as a job file for `lkp run`, for machines with lkp-tests."""

from __future__ import annotations

import re
import shlex
from typing import Final

from swingbot_jobs.contract.unit_job import UnitJob

# Programs that lkp-tests has under the same name, with the same parameters.
_KNOWN: Final = ("hackbench", "netperf", "will-it-scale")
# Parameters of the whole job in lkp-tests; all others belong to the program.
_GLOBAL: Final = ("cluster",)
_PLAIN: Final = re.compile(r"0|[1-9][0-9]{0,17}|[A-Za-z][A-Za-z0-9_-]*")
_WORDS: Final = ("y", "n", "yes", "no", "on", "off", "true", "false", "null")
_SERVERS: Final = {"netperf": "netserver"}


def text(job: UnitJob) -> str:
    """Return the job file, or only a comment if lkp-tests does not have the program."""
    if job.program not in _KNOWN:
        return (
            f"# lkp-tests has no program {job.program}, so `lkp run` cannot run this job;"
            " reproduce.sh runs it.\n"
        )
    given = {name: value for name, value in job.params.items() if name not in _GLOBAL}
    lines = [
        "# Use with `lkp run job.yaml` of lkp-tests, on a machine that runs one of the kernels."
        " Its metrics have the same names as in swingbot.",
        f"suite: {job.program}",
        f"testcase: {job.program}",
        "category: benchmark",
        *([f"kernel_cmdline: {_scalar(job.cmdline)}"] if job.cmdline else []),
        *(f"# set before the run: sysctl -w {_assignment(job, name)}" for name in job.sysctl),
        *(f"{name}: {_scalar(job.params[name])}" for name in _GLOBAL if name in job.params),
    ]
    server = _SERVERS.get(job.program)
    if server is not None:
        lines += [
            "if role server:",
            f"  {server}:",
            "if role client:",
            *(f"  {line}" for line in _program(job.program, given)),
        ]
    else:
        lines += _program(job.program, given)
    return "\n".join(lines) + "\n"


def _program(program: str, params: dict[str, str]) -> list[str]:
    return [
        f"{program}:",
        *(f"  {name}: {_scalar(value)}" for name, value in sorted(params.items())),
    ]


def _assignment(job: UnitJob, name: str) -> str:
    return shlex.quote(f"{name}={job.sysctl[name]}")


def _scalar(value: str) -> str:
    """Format a value as a YAML scalar; quoted unless it is plainly a word or a number."""
    plain = bool(_PLAIN.fullmatch(value)) and value.lower() not in _WORDS
    return value if plain else "'" + value.replace("'", "''") + "'"
