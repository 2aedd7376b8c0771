from __future__ import annotations

from pathlib import Path

from swingbot.app.describe import describe
from swingbot.app.settings import Settings

# Rewritten by: env -i .venv/bin/swingbot describe > tests/golden/describe/describe.yaml
GOLDEN = Path(__file__).parents[1] / "golden" / "describe" / "describe.yaml"


def test_the_description_of_what_is_in_force_is_the_reviewed_one() -> None:
    assert describe(Settings()) == GOLDEN.read_text()
