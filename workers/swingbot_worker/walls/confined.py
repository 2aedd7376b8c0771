"""`python -m swingbot_worker.walls.confined DIRECTORY [options] -- COMMAND`: run a small program of
a tree behind the walls of an untrusted build, and print what became of it as JSON.

The program sees `DIRECTORY`, which it cannot change, and the system's programs. It can write to its
own /tmp alone. It is refused where a wall is missing; that of the disk is not needed, because /tmp
counts as memory.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from swingbot_worker import InfraError
from swingbot_worker.walls.argv import View
from swingbot_worker.walls.guard import OverLimit
from swingbot_worker.walls.limits import MIB, BuildLimits
from swingbot_worker.walls.probe import missing, probe
from swingbot_worker.walls.sandbox import Sandbox, SandboxedCommand

_ENVIRONMENT: Final = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C.UTF-8",
    "HOME": "/tmp",
}
# What it prints is its answer; of its errors, the last line follows if it fails.
_ANSWER: Final = (
    '"$@" 2>/tmp/stderr </dev/null; status=$?;'
    " [ $status = 0 ] || { echo; tail -n 1 /tmp/stderr | head -c 300; }; exit $status"
)
_TMP: Final = 16 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfinedAnswer:
    """Result of the program: `rc` is its exit status, `text` its output.

    `problem` says why it did not run or was stopped; None if it ended by itself.
    """

    rc: int | None = None
    text: str = ""
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfinedLimits:
    """Limits of one program. `memory` and `output` are in bytes."""

    seconds: float
    memory: int
    processes: int
    output: int


def confined(directory: Path, argv: Sequence[str], limits: ConfinedLimits) -> ConfinedAnswer:
    """Run `argv` in `directory` behind all walls; nothing is raised."""
    try:
        result = probe()
        lacking = [wall for wall in result.walls if not wall.stands and wall.name != "disk"]
        if result.sandbox is None or lacking:
            return ConfinedAnswer(problem=f"walls are missing on this host: {missing(lacking)}")
        return _run(result.sandbox, directory, argv, limits)
    except OverLimit as error:
        # the settings that it names are those of builds
        return ConfinedAnswer(problem=f"it {str(error).partition(' (SWINGBOT')[0]}")
    except InfraError as error:
        return ConfinedAnswer(problem=str(error))


def _run(
    sandbox: Sandbox, directory: Path, argv: Sequence[str], limits: ConfinedLimits
) -> ConfinedAnswer:
    small = replace(sandbox, limits=_small(sandbox.limits, limits))
    with tempfile.TemporaryDirectory(prefix="swingbot-confined-") as place:
        log = Path(place) / "answer"
        done = small.run(
            SandboxedCommand(
                argv=["bash", "-c", _ANSWER, "bash", *argv],
                view=View(trust="untrusted", read_only=(directory,), directory=directory),
                env=_ENVIRONMENT,
                log=log,
            ),
            timeout=limits.seconds,
        )
        if done.timed_out:
            return ConfinedAnswer(
                problem=f"it did not end within {limits.seconds:.0f} s and was stopped"
            )
        with log.open("rb") as file:
            text = file.read(limits.output).decode("utf-8", "replace")
    return ConfinedAnswer(rc=done.rc, text=text)


def _small(host: BuildLimits, limits: ConfinedLimits) -> BuildLimits:
    """Return `limits`, not above those that a build has on this host."""
    return replace(
        host,
        memory=min(host.memory, limits.memory),
        processes=min(host.processes, limits.processes),
        tmp=_TMP,
        file=_TMP,
        log=limits.output,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program that the command line names; print the answer as one JSON document."""
    ask = argparse.ArgumentParser(prog="python -m swingbot_worker.walls.confined")
    ask.add_argument("directory", type=Path)
    ask.add_argument("--seconds", type=float, required=True)
    ask.add_argument("--memory-mb", type=int, required=True)
    ask.add_argument("--processes", type=int, required=True)
    ask.add_argument("--output-kb", type=int, required=True)
    ask.add_argument("argv", nargs="+")
    given = ask.parse_args(arguments)
    answer = confined(
        given.directory,
        given.argv,
        ConfinedLimits(
            seconds=given.seconds,
            memory=given.memory_mb * MIB,
            processes=given.processes,
            output=given.output_kb << 10,
        ),
    )
    json.dump(asdict(answer), sys.stdout)


if __name__ == "__main__":
    main()
