"""The rules of every driver, kept by a real kernel in QEMU."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.boot.lab import virtual_lab
from tests.contract.labs import Lab
from tests.contract.test_testbox import (  # the same tests, with the lab below
    test_a_panic_is_a_result_and_the_runs_before_it_are_kept,
    test_a_run_that_fails_or_says_nothing_spoils_no_other,
    test_an_image_that_is_not_the_ordered_one_is_our_fault,
    test_an_unknown_program_is_reported_before_anything_boots,
    test_every_file_is_listed_with_its_sha256,
)

__all__ = [
    "test_a_panic_is_a_result_and_the_runs_before_it_are_kept",
    "test_a_run_that_fails_or_says_nothing_spoils_no_other",
    "test_an_image_that_is_not_the_ordered_one_is_our_fault",
    "test_an_unknown_program_is_reported_before_anything_boots",
    "test_every_file_is_listed_with_its_sha256",
]


@pytest.fixture
def lab(tmp_path: Path, base_kernel: Path) -> Lab:
    return virtual_lab(tmp_path, base_kernel)
