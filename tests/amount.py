"""How much of a test runs: a part that fits into `make test`, or with SWINGBOT_TEST_ALL=1, as
`make test-all` sets it, the long form.
"""

from __future__ import annotations

import os
from typing import Final

ALL: Final = bool(os.environ.get("SWINGBOT_TEST_ALL"))


def examples(usual: int) -> int:
    """How many examples hypothesis tries where `usual` ones find what there is to find."""
    return 10 * usual if ALL else max(10, usual * 3 // 10)
