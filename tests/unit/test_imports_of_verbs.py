"""No verb imports a library that it does not use: the large ones take most of a second to import.

Verbs run in one process, up to where they find no service, and name what was imported.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

NOWHERE: Final = "http://127.0.0.1:9"  # the port of a service that no machine has today
STATISTICS: Final = frozenset({"numpy", "scipy", "scipy.stats"})
PAGES: Final = frozenset({"starlette", "uvicorn", "jinja2"})
BUILDBOT: Final = frozenset({"twisted", "buildbot"})
DATABASE: Final = frozenset({"sqlalchemy", "psycopg2", "alembic"})
SCHEMAS: Final = frozenset({"jsonschema", "cryptography"})
# Libraries that none of these verbs has a use for.
FORBIDDEN: Final = [
    (
        STATISTICS | PAGES | BUILDBOT | SCHEMAS,
        "list incidents, show x1, status, wait c1, cancel c1, incident show i1, proof show i1,"
        " report list, testbox list, tree list, token list, raw c1 --out no, worker list, check,"
        " kcidb c1 --origin lab",
    ),
    (
        STATISTICS | PAGES | BUILDBOT | DATABASE,
        "--help, facts, parse hackbench no, jobs lint no",
    ),
    (
        frozenset({"scipy.stats"}) | PAGES | BUILDBOT | DATABASE,
        "stats compare --base 1;2 --head 3;4",
    ),
]
PROGRAM: Final = """
import json, sys
from swingbot.app.cli import main
for verb in sys.argv[1:]:
    sys.argv = ["swingbot", *verb.split()]
    try:
        main()
    except SystemExit:
        pass
    print(json.dumps([verb, sorted(sys.modules)]))
"""


# Modules that take longest, and of which a command for a service elsewhere has no use.
SLOW: Final = frozenset(
    {
        "swingbot.service.ports.lab",
        "swingbot.core.model.records",
        "swingbot.core.report.table.formats",
        "swingbot_jobs.kernel_diff",
        "swingbot_jobs.language.program",
        "yaml",
    }
)


@pytest.mark.parametrize(("libraries", "verbs"), FORBIDDEN)
def test_a_verb_imports_nothing_that_it_does_not_use(
    libraries: frozenset[str], verbs: str, tmp_path: Path
) -> None:
    env = {"SWINGBOT_PATHS_STATE": str(tmp_path / "state")}
    assert _imported(verbs, tmp_path, env, libraries) == {}


def test_a_question_to_a_service_elsewhere_imports_no_use_case(tmp_path: Path) -> None:
    assert _imported("list bisections, status", tmp_path, {"SWINGBOT_URL": NOWHERE}, SLOW) == {}


def _imported(
    verbs: str, place: Path, env: Mapping[str, str], libraries: frozenset[str]
) -> dict[str, list[str]]:
    """Those of `libraries` that each verb imports."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *verbs.split(", ")],
        capture_output=True,
        text=True,
        check=True,
        cwd=place,
        env=os.environ | env,
    )
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('["')]
    assert [verb for verb, _ in found] == verbs.split(", ")
    assert all("click" in modules for _, modules in found)
    return {verb: used for verb, modules in found if (used := sorted(libraries & set(modules)))}
