"""The last line of dbench: `swingbot_jobs.reading.dbench`."""

from __future__ import annotations

from collections.abc import Mapping

from swingbot_jobs.reading.dbench import read_dbench


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return throughput in MB/s and the longest operation in ms.

    Raises ParseError without exactly one result of as many clients as asked for.
    """
    return read_dbench("dbench", files, params)
