"""What rows of a large table changed: as much as its bytes allow, and options of every row."""

from __future__ import annotations

import hashlib
import io
from typing import Any

from swingbot.adapters.kernel_reader import ChildKernelRecords
from swingbot.service.report.table_sheet import (
    CONFIG_BYTES,
    MOST_REASONS,
    RECORD_BYTES,
    kernel_changes,
)
from swingbot_jobs.kernel_diff import FILE
from tests.db.test_kernel_change import a_record

ROWS = 24


class Builds:
    """Kernels whose files say that they have `record` and `config` bytes, one more option each."""

    def __init__(self, record: int, config: int) -> None:
        self.content: dict[str, bytes] = {}
        self.rows = {
            f"key{number}": {
                "build_key": f"key{number}",
                "status": "built",
                "files": {
                    FILE: self._kept(a_record(1000 + number), record),
                    "config": self._kept(f"CONFIG_A={number}\n".encode(), config),
                },
            }
            for number in range(ROWS + 1)
        }

    def _kept(self, content: bytes, size: int) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        self.content[digest] = content
        return {"sha256": digest, "size": size}

    def kernel_builds(self, conn: Any, keys: Any) -> dict[str, Any]:
        return {key: self.rows[key] for key in keys if key in self.rows}

    def samples_of_table(self, conn: Any, id: int | str, metrics: Any = None) -> list[Any]:
        raise NotImplementedError

    def changes(self) -> list[dict[str, Any]]:
        arms = [{"arm": n, "variant": {"build_key": f"key{n}"}} for n in range(ROWS + 1)]
        table = {"rows": [], "against": ["first"], "arms": arms}
        records = ChildKernelRecords(lambda digest: io.BytesIO(self.content[digest]))
        return kernel_changes(self, records, None, table)


def test_all_rows_say_their_options_and_the_first_their_code() -> None:
    changes = Builds(record=RECORD_BYTES // 6, config=1000).changes()
    assert [change["arm"] for change in changes] == list(range(1, ROWS + 1))
    states = [change["state"] for change in changes]
    assert states == ["compared"] * 3 + ["not compared"] * (ROWS - 3)
    assert all(change["config"][0]["symbol"] == "CONFIG_A" for change in changes)
    assert "compare the two alone" in changes[-1]["reason"]


def test_a_pair_beyond_all_bytes_is_compared_and_others_are_left_out() -> None:
    changes = Builds(record=2 * RECORD_BYTES, config=CONFIG_BYTES // 4).changes()
    assert [change["state"] for change in changes] == ["compared"] + ["not compared"] * 2


def test_pairs_with_nothing_to_compare_are_few() -> None:
    builds = Builds(record=1, config=1)
    builds.rows.clear()
    changes = builds.changes()
    assert [change["state"] for change in changes] == ["waiting"] * MOST_REASONS
