"""JSON files that a worker delivered with a boot, such as rootfs.json. Pure."""

from __future__ import annotations

import json
from typing import Any

from swingbot.core.limits import RECORD_VALUES


def read_record(text: bytes) -> Any:
    """Parse a file. Raises ValueError if it is not JSON, or has more than RECORD_VALUES values: an
    empty list takes 25 times its text in memory.
    """
    if sum(map(text.count, (b",", b"[", b"{", b":"))) > RECORD_VALUES:
        raise ValueError(f"it has more than {RECORD_VALUES} values")
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it nests too deeply") from None
