"""Results of a boot that are small and need gigabytes to be read."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAME_BYTES = 250 << 20


def long_name(file: Path) -> Path:
    """Write an archive with one member, whose name of 250 MB decodes to several times that."""
    head = tarfile.TarInfo("././@LongLink")
    head.type, head.size = tarfile.GNUTYPE_LONGNAME, NAME_BYTES
    with file.open("wb") as tar:
        tar.write(head.tobuf(tarfile.GNU_FORMAT))
        for _ in range(NAME_BYTES >> 20):
            tar.write(b"\xff" * (1 << 20))
        tar.write(tarfile.TarInfo("facts/x").tobuf(tarfile.GNU_FORMAT))
    return file


@contextmanager
def many_values(program: str = "") -> Iterator[Path]:
    """Yield a directory with the program `many`, whose parser runs `program` and then finds
    100 000 values.
    """
    with tempfile.TemporaryDirectory(prefix="swingbot-attack-") as directory:
        place = Path(directory) / "many"
        place.mkdir()
        (place / "meta.yaml").write_text(_META)
        (place / "run").write_text("#!/bin/sh\n")
        (place / "parse.py").write_text(
            "def parse(files, params):\n"
            f"    {program or 'pass'}\n"
            "    return {f'm{n}': [0.1234567890123] * 10_000 for n in range(10)}\n"
        )
        yield Path(directory)


_META = """\
kind: benchmark
scope: micro
describe: gives more samples than anybody can store
parameters: {}
metrics:
  m0: {headline: true, unit: "1", better: higher, describe: a number}
"""
