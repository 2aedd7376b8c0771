"""Which tests a change reaches."""

from __future__ import annotations

import pytest

from tests.affected import choose, data_name, described, module_names

FILES: dict[str, str | None] = {
    "master/swingbot/__init__.py": "",
    "master/swingbot/core/__init__.py": "",
    "master/swingbot/core/stats.py": '"""swingbot.core.mail is not imported."""\n',
    "master/swingbot/core/mail.py": "",
    "master/swingbot/app/__init__.py": "",
    "master/swingbot/app/cli.py": 'COMMANDS = {"stats": "swingbot.app.lazy"}\n',
    "master/swingbot/app/lazy.py": "def f():\n    from swingbot.core import stats\n",
    "db/swingbot_db/migrate.py": 'VIEWS = "views"\n',
    "db/views/swings.sql": None,
    "jobs/programs/netperf/run": None,
    "docs/mail.md": None,
    "pyproject.toml": None,
    "tests/builders.py": "import swingbot.core.mail\n",
    "tests/db/conftest.py": "from swingbot_db import migrate\n",
    "tests/db/test_read.py": "",
    "tests/unit/test_stats.py": "from swingbot.core.stats import *\n",
    "tests/unit/test_mail.py": "from tests import builders\n",
    "tests/unit/test_cli.py": 'ARGV = [BIN / "swingbot", "stats"]\n',
    "tests/unit/test_programs.py": 'PROGRAMS = ROOT / "jobs/programs"\n',
    "tests/unit/test_docs.py": "",
}


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("tests/unit/test_stats.py", ["unit/test_stats.py"]),
        # by import, by a name of a module in a string, and by the program
        ("master/swingbot/core/stats.py", ["unit/test_cli.py", "unit/test_stats.py"]),
        ("master/swingbot/core/mail.py", ["unit/test_mail.py"]),
        ("db/views/swings.sql", ["db/test_read.py"]),
        ("jobs/programs/netperf/run", ["unit/test_programs.py"]),
        ("docs/mail.md", ["unit/test_docs.py"]),
        ("pyproject.toml", sorted(file[6:] for file in FILES if "/test_" in file)),
        ("nobody/names/this", []),
    ],
)
def test_a_change_chooses_the_tests_that_it_can_reach(changed: str, tests: list[str]) -> None:
    assert [choice.test for choice in choose(FILES, [changed])] == [f"tests/{one}" for one in tests]


def test_a_package_is_executed_by_what_is_imported_from_it() -> None:
    chosen = [choice.test for choice in choose(FILES, ["master/swingbot/core/__init__.py"])]
    assert {"tests/unit/test_stats.py", "tests/unit/test_mail.py"} <= set(chosen)


def test_a_module_that_is_gone_is_still_reached_from_what_imports_it() -> None:
    files = {file: text for file, text in FILES.items() if file != "master/swingbot/core/mail.py"}
    chosen = choose(files, ["master/swingbot/core/mail.py"])
    assert [choice.test for choice in chosen] == ["tests/unit/test_mail.py"]


def test_the_way_from_the_change_to_the_test_is_told() -> None:
    (line,) = described(choose(FILES, ["db/swingbot_db/migrate.py"]))
    assert line == "tests/db/test_read.py  <- tests/db/conftest.py <- db/swingbot_db/migrate.py"


def test_modules_are_found_below_the_roots_of_the_packages() -> None:
    names = module_names(FILES)
    assert names["swingbot_db.migrate"] == "db/swingbot_db/migrate.py"
    assert names["swingbot.core"] == "master/swingbot/core/__init__.py"
    assert names["tests.builders"] == "tests/builders.py"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("db/views/swings.sql", "views"),
        ("jobs/vm.yaml", "jobs"),
        ("tests/golden/report/x.txt", "golden"),
        ("dashboards/x.json", "dashboards"),
        ("README.md", "README.md"),
    ],
)
def test_data_is_named_by_its_first_folder(path: str, name: str) -> None:
    assert data_name(path, packages=set()) == name
