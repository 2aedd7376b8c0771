"""The numbers of docs/limits.md, from the code that has them.

`python -m tests.limits_page` prints the page with its sections made anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.thresholds_page import ROOT, bullet, comments

PAGE: Final = ROOT / "docs" / "limits.md"
MODULES: Final = {
    "Jobs and results": "jobs/swingbot_jobs/limits.py",
    "Decisions": "master/swingbot/core/limits.py",
    "Use cases": "master/swingbot/service/limits.py",
    "Repositories, archives and files": "master/swingbot/adapters/limits.py",
    "Pages": "master/swingbot/web/limits.py",
    "Processes and commands": "master/swingbot/app/limits.py",
    "The database": "db/swingbot_db/limits.py",
    "Workers": "workers/swingbot_worker/limits.py",
}
_UNIT: Final = re.compile(
    r"^(Bytes|Characters|Days|Files|Levels|Lines|MiB|Seconds|Values|Words)"
    r" (of|for which|in which|that are read of|to which|until) (an? |the )?"
)


def page() -> str:
    """The page: what it says by hand, and a section for each module."""
    head, _, _ = PAGE.read_text().partition("\n## ")
    sections = (
        f"\n## {title}\n\n`{module}`\n" + "\n".join(_section(ROOT / module))
        for title, module in MODULES.items()
    )
    return f"{head}{chr(10).join(sections)}\n"


def _section(module: Path) -> Iterator[str]:
    for heading, group, about in comments(module):
        if heading:
            yield f"\n### {heading}\n"
        numbers = ", ".join(number.replace(" ", "") for number in group)
        yield from bullet(f"{numbers}: {_what(about)}")


def _what(comment: str) -> str:
    """What a number limits; its unit is in its name, the reason in the code."""
    words = re.split(r"[;:(]|\.(?:\s|$)|,\s(?:else|its|so|which)\b", comment)[0].strip()
    return _UNIT.sub("", words)


if __name__ == "__main__":
    print(page(), end="")
