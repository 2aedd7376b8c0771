"""No regular expression takes more than linear time, because strangers write what they read."""

from __future__ import annotations

import ast
import math
import re
from typing import Final

import pytest

from tests.regular_expressions import Attack, Used, attacks, computed, expressions, modules

SIZES: Final = (32 << 10, 64 << 10, 128 << 10)
GROWTH: Final = 3.0  # of processor time for each doubling: 2 is linear, 4 quadratic
LINEAR_SECONDS: Final = 0.05  # less is not measured
# A quadratic attack that takes less at the first size takes less than LINEAR_SECONDS at the last.
SUSPECT_BYTES: Final = 16 << 10
SUSPECT_SECONDS: Final = LINEAR_SECONDS * (SUSPECT_BYTES / SIZES[-1]) ** 2
HOPELESS_SECONDS: Final = 0.3  # at SUSPECT_BYTES
# Bytes of the text that the only caller gives.
SHORT: Final = {"swingbot_worker.kbuild.normal_form._SOURCE_LINE": 512}
WORST: Final = 6  # attacks on each expression that are measured
# What people give to their own commands and programs, and escaped text.
COMPUTED: Final = {
    "swingbot.app.bisect_run.session": 1,
    "swingbot.app.keep.reader_watchdog": 1,
    "swingbot.core.patchset.mime": 1,
    "swingbot_jobs.language.program_files": 1,
    "swingbot_jobs.language.values": 1,
    "swingbot_worker.testbox.ssh.console_log": 1,
}


def test_every_expression_takes_linear_time() -> None:
    found = expressions()
    assert len(found) > 250
    assert {where for used in found for where in _slow(used)} == set()


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"(a+)+b", "match"),
        (r"\s+$", "search"),
        (r"<a.*?</a>", "findall"),
        (r" *#.*$", "sub"),
        (r"x?(?:[a-z]+\d*)*-", "fullmatch"),
    ],
)
def test_a_slow_expression_is_noticed(pattern: str, method: str) -> None:
    slow = Used(where="here", pattern=re.compile(pattern), methods=frozenset({method}))
    assert list(_slow(slow))


def test_expressions_that_are_computed_are_few() -> None:
    counts = {name: len(list(computed(ast.parse(file.read_text())))) for name, file in modules()}
    assert {name: count for name, count in counts.items() if count} == COMPUTED


def _slow(used: Used) -> list[str]:
    """Return the first of the worst attacks that takes more than linear time."""
    size = SHORT.get(used.where, SUSPECT_BYTES)
    taken: dict[Attack, float] = {}
    for attack in attacks(used.pattern):
        taken[attack] = used.seconds(text := attack.text(size))
        if HOPELESS_SECONDS < taken[attack] < math.inf:  # or something else took the processor
            taken[attack] = min(used.seconds(text) for _ in range(4))
        if taken[attack] > HOPELESS_SECONDS:
            return [f"{used.where}: {attack.text(60)!r} {taken[attack]:.3f} s"]
    if used.where in SHORT:
        return []
    suspects = [each for each, seconds in taken.items() if seconds >= SUSPECT_SECONDS]
    for attack in sorted(suspects, key=taken.__getitem__)[-WORST:]:
        last = math.inf
        for size in SIZES:
            seconds = used.seconds(text := attack.text(size))
            most = max(LINEAR_SECONDS, GROWTH * last)
            if most < seconds < math.inf:  # or something else took the processor
                seconds = min(used.seconds(text) for _ in range(4))
            if seconds == math.inf or seconds > most:
                return [f"{used.where}: {attack.text(60)!r} {last:.3f} s, {seconds:.3f} s"]
            last = seconds
    return []
