"""Are the claims of bisections true in unforeseen worlds? New ones for each commit.

SEED=N draws those of another run again.

Fails only where chance would do so once in a million runs.
A weaker finding is written to `build/composed-SEED.json`, for `python -m tests.calibration.compose`
to be run on more worlds. Ingredients known to be wrong (`known.json`) are held against their
figures.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.amount import ALL
from tests.calibration import compose
from tests.calibration.compose import Judged, draw, first_seed, group, line, worst
from tests.calibration.known import figures, got_worse, known, mended
from tests.calibration.score import claims, too_sure

FALSE_ALARM = 1e-6
KNOWN = known()["ingredients"]
# Processor seconds.
WORLDS, SECONDS = (1000, 3600.0) if ALL else (250, 120.0)


@pytest.fixture(scope="module")
def found() -> list[Judged]:
    return draw(first_seed(), WORLDS, SECONDS)


def test_composed_worlds_make_no_more_claims_wrong_than_their_probabilities_admit(
    found: list[Judged], record_property: Callable[[str, object], None]
) -> None:
    first = first_seed()
    every = group("all", found)
    written = compose.write_findings(first, found, compose.ROOT / "build")
    record_property(
        "composed",
        f"SEED={first}, {every.worlds} drawn, {every.wrong} of {every.claims} claims wrong "
        f"(stated: {every.stated_wrong:.1f})"
        + (f"; findings in {written.relative_to(compose.ROOT)}" if written else ""),
    )
    sound = [j for j in found if not set(KNOWN) & set(j.ingredients)]
    assert too_sure(claims(j.verdict for j in sound)) >= FALSE_ALARM, _wrong(sound)


@pytest.mark.parametrize("name", KNOWN)
def test_an_ingredient_known_to_be_wrong_gets_no_worse(
    found: list[Judged], name: str, record_property: Callable[[str, object], None]
) -> None:
    having = [j for j in found if name in j.ingredients]
    verdicts = [j.verdict for j in having]
    if mended(verdicts):
        record_property("honest", f"{name}; measure it and take it off the list")
    assert got_worse(verdicts, KNOWN[name]) >= FALSE_ALARM, (
        f"{figures(verdicts)}; known: {KNOWN[name]}\n{_wrong(having)}"
    )


def test_no_composed_world_breaks_the_engine(found: list[Judged]) -> None:
    broken = [line(j) for j in found if j.verdict.error]
    assert not broken, "\n".join(broken)


def _wrong(found: list[Judged]) -> str:
    return f"SEED={first_seed()}\n" + "\n".join(map(line, worst(found)))
