"""No verb imports a library that it does not use: the large ones take most of a second to import.

A verb runs in a process of its own, up to where it finds no service, and names what was imported.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

STATISTICS: Final = frozenset({"numpy", "scipy", "scipy.stats"})
PAGES: Final = frozenset({"starlette", "uvicorn", "jinja2"})
BUILDBOT: Final = frozenset({"twisted", "buildbot"})
DATABASE: Final = frozenset({"sqlalchemy", "psycopg2", "alembic"})
SCHEMAS: Final = frozenset({"jsonschema", "cryptography"})
# Verb -> libraries that it has no use for.
FORBIDDEN: Final = {
    **dict.fromkeys(
        (
            "list incidents",
            "show x1",
            "status",
            "wait c1",
            "cancel c1",
            "incident show i1",
            "proof show i1",
            "report list",
            "testbox list",
            "tree list",
            "token list",
            "raw c1 --out no",
            "worker list",
        ),
        STATISTICS | PAGES | BUILDBOT | SCHEMAS,
    ),
    **dict.fromkeys(
        ("--help", "facts", "parse hackbench no", "jobs lint no"),
        STATISTICS | PAGES | BUILDBOT | DATABASE,
    ),
    "stats compare --base 1;2 --head 3;4": frozenset({"scipy.stats"}) | PAGES | BUILDBOT | DATABASE,
}
PROGRAM: Final = """
import json, sys
from swingbot.app.cli import main
sys.argv[0] = "swingbot"
try:
    main()
except SystemExit:
    pass
print(json.dumps(sorted(sys.modules)))
"""


@pytest.mark.parametrize("words", FORBIDDEN)
def test_a_verb_imports_nothing_that_it_does_not_use(words: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words.split()],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=os.environ | {"SWINGBOT_PATHS_STATE": str(tmp_path / "state")},
    )
    imported = set(json.loads(done.stdout.splitlines()[-1]))
    assert "click" in imported
    assert imported & FORBIDDEN[words] == set()
