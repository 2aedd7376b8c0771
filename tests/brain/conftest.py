"""Tests here drive the whole brain, with its store in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.memory_brain import MemoryBrain, make_memory_brain


@pytest.fixture
def brain(tmp_path: Path) -> MemoryBrain:
    return make_memory_brain(tmp_path)
