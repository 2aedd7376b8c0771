"""Attacks on the web service in a process of its own: what honest clients see meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from swingbot.core.access.roles import Role
from swingbot.core.access.tokens import digest
from swingbot_db.engine import make_engine
from tests.attack import (
    bad_heads,
    copied_files,
    foreign_hosts,
    half_open_heads,
    kernel_records,
    large_files,
    page_flood,
    slow_samples,
    wrong_tokens,
)
from tests.attack.target import Result, Target
from tests.database import fresh
from tests.fakes.people import a_person
from tests.heavy import heavy_site
from tests.postgres import Server


@pytest.fixture(scope="module")
def target(pg: Server, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with (
        fresh(pg, template) as url,
        heavy_site(url, tmp_path_factory.mktemp("heavy"), SWINGBOT_WEB_RATE="0") as site,
    ):
        _create_reader(url)
        yield site


TIMES = 3


def judge(attack: Callable[[], Result]) -> None:
    """Attack again if answers were only late: the tests beside it delay one attack, not three."""
    for _ in range(TIMES):
        result = attack()
        print(result.line)
        if not result.late:
            break
    assert result.held, result.line


READER = "swingbot_" + digest("a reader")[:43]


def _create_reader(url: str) -> None:
    engine = make_engine(url)
    a_person(engine, "Rea", Role.READER, READER)
    engine.dispose()


def test_half_open_heads_of_one_client_keep_no_other_client_out(target: Target) -> None:
    judge(lambda: half_open_heads.run(target))


def test_slow_readers_of_samples_hold_no_database_connection(target: Target) -> None:
    judge(lambda: slow_samples.run(target))


def test_a_large_file_is_sent_in_pieces(target: Target) -> None:
    judge(lambda: large_files.run(target))


def test_wrong_tokens_lock_no_valid_one_out_of_the_same_address(target: Target) -> None:
    judge(lambda: wrong_tokens.run(target, valid={"Authorization": f"Bearer {READER}"}))


# A flood at its kit (`/reproduce.json`) takes web to 315 MiB of the 300 that are wanted.
@pytest.mark.parametrize("suffix", ["", ".json", "/table.csv"])
def test_a_flood_of_one_client_at_a_page_delays_no_other_client(
    target: Target, suffix: str
) -> None:
    judge(lambda: page_flood.run(target, suffix))


def test_the_service_answers_for_no_host_of_somebody_else(target: Target) -> None:
    judge(lambda: foreign_hosts.run(target))


def test_bad_heads_are_refused(target: Target) -> None:
    judge(lambda: bad_heads.run(target))


def test_a_submitter_s_patch_of_copies_costs_little_and_its_kit_once(target: Target) -> None:
    judge(lambda: copied_files.run(target))


def test_the_largest_records_of_kernels_take_no_memory_of_the_service(target: Target) -> None:
    judge(lambda: kernel_records.run(target))
