"""`python -m swingbot.adapters.result_child MEMORY SECONDS ANSWER PROGRAMS`: the child of
result_reader. It starts fast because it imports nothing but the parsers.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO, Any

from swingbot.adapters.reader_child import serve
from swingbot_jobs import codec
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import load_programs
from swingbot_jobs.reading.parse import parse_results
from swingbot_jobs.reading.result import ParsedRun


def main(arguments: list[str]) -> None:
    programs = load_programs(Path(arguments[3]))

    def answer(document: dict[str, Any], tar: IO[bytes]) -> dict[str, Any]:
        jobs = [codec.typed(UnitJob, job) for job in document["unit_jobs"]]
        return {"runs": list(map(_row, parse_results(tar, jobs, programs, document["facts"])))}

    serve(answer, *map(int, arguments[:3]))


def _row(run: ParsedRun) -> dict[str, Any]:
    return {
        "status": run.status,
        "reason": run.reason,
        "samples": run.samples,
        "seconds": run.seconds,
        "limited": run.limited,
    }


if __name__ == "__main__":
    main(sys.argv[1:])
