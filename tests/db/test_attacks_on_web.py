"""Attacks on the web service in a process of its own: what honest clients see meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from tests.attack import files_of_a_run, half_open_heads, slow_samples
from tests.attack.target import Target
from tests.database import fresh
from tests.heavy import heavy_site


@pytest.fixture(scope="module")
def target(
    server_url: sa.URL, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Target]:
    with (
        fresh(server_url, template) as url,
        heavy_site(url, tmp_path_factory.mktemp("heavy"), SWINGBOT_WEB_RATE="0") as site,
    ):
        yield site


def test_half_open_heads_of_one_client_keep_nobody_out(target: Target) -> None:
    result = half_open_heads.run(target)
    assert result.held, result.line


def test_slow_readers_of_samples_hold_no_database_connection(target: Target) -> None:
    result = slow_samples.run(target)
    assert result.held, result.line


def test_a_large_file_of_a_run_is_sent_in_pieces(target: Target) -> None:
    result = files_of_a_run.run(target)
    assert result.held, result.line
