"""`swingbot results` and `history` on the service's host and from elsewhere: the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from swingbot.core.limits import FIELD_CHARACTERS
from tests import builders as make
from tests.database import fresh
from tests.db.test_remote import elsewhere, here, run
from tests.postgres import Server
from tests.releases import HACKBENCH, three_releases
from tests.served import Served, served

SHOWN: Final = (
    "results",
    "results --tree stable --json",
    "results v6.1.110 v6.1.111",
    "results v6.1.110 v6.1.111 v6.1.112 --json",
    "results v6.1.111 v6.1.110 --sort size",
    "results base tip --metric instructions",
    "results base tip --testbox vm-tcg --verdict worse,better",
    "results base tip --test nothing-has-this-name",
    "results base v6.1.110 tip",
    f"history {make.METRIC}",
    f"history {make.METRIC} --json",
    f"history {make.METRIC} --compiler clang",
    f"history {HACKBENCH} --testbox vm-icount",
    f"history {HACKBENCH} --testbox vm-tcg --tree stable --json",
)
REFUSED: Final = {
    "results base": "give a kernel to compare base with",
    "results base v6.1.110": "all names given are kernel",
    "results base nosuch": "tree stable has no kernel 'nosuch'",
    "results base tip --tree other": "tree 'other' does not exist",
    "results base tip --testbox nosuch": "nosuch",
    "results base tip --verdict worst": "verdict must be one of worse",
    "results base tip --sort age": "sort must be one of importance",
    "results 1 2 3 4 5 6 7": "7 kernels are given; 2 to 6",
    "history nosuch.metric": "no boot has reported 'nosuch.metric'",
    f"history {HACKBENCH}": "choose one by tree, testbox and unit job",
    f"history {HACKBENCH} --testbox nosuch": "those that have are vm-icount, vm-tcg",
    f"history {make.METRIC} --tree other": "those that have are stable",
    **{
        f"{words} {'x' * (FIELD_CHARACTERS + 1)}": f"{name} must have at most 300 characters"
        for words, name in {
            "results base": "kernel",
            "results --metric": "metric",
            "results base tip --testbox": "testbox",
            "history": "metric",
            f"history {make.METRIC} --tree": "tree",
            f"history {make.METRIC} --unit-job": "unit_job",
            f"history {make.METRIC} --compiler": "compiler",
        }.items()
    },
    f"history {make.METRIC} --unit-job nosuch": "unit job 'nosuch' has no boot",
}


@pytest.fixture(scope="module")
def web(pg: Server, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    place = tmp_path_factory.mktemp("results")
    with fresh(pg, template) as url, served(url, place, filled=False) as running:
        three_releases(running.conn, running.settings.mirror)
        running.conn.commit()
        yield running


@pytest.mark.parametrize("words", SHOWN)
def test_what_was_measured_is_printed_the_same_from_elsewhere(
    words: str, web: Served, tmp_path: Path
) -> None:
    on_host, from_elsewhere = run(words, here(web)), run(words, elsewhere(web, tmp_path))
    assert on_host.exit_code == from_elsewhere.exit_code == 0, from_elsewhere.output
    assert from_elsewhere.stdout == on_host.stdout
    assert from_elsewhere.stderr == on_host.stderr == ""


@pytest.mark.parametrize("words", REFUSED)
def test_what_does_not_exist_is_refused_in_the_same_words(
    words: str, web: Served, tmp_path: Path
) -> None:
    on_host, from_elsewhere = run(words, here(web)), run(words, elsewhere(web, tmp_path))
    assert on_host.exit_code == from_elsewhere.exit_code == 2, from_elsewhere.output
    assert REFUSED[words] in on_host.output and on_host.output.count("\n") == 1
    assert from_elsewhere.output == on_host.output
