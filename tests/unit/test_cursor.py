"""Cursors: a sort key comes back, and nothing else is one."""

from __future__ import annotations

import base64

import pytest

from swingbot.core.model import cursor


def test_a_sort_key_comes_back() -> None:
    key: list[str | float | bool] = [True, 3, -0.5, "vm-icount", "größe"]
    assert cursor.decode(cursor.encode(key), (bool, int, float, str, str)) == key


@pytest.mark.parametrize(
    "text", ['["\\ud800"]', '["a\\u0000"]', "[1]", '{"a": 1}', '"a"', "[", '["a", "b"]']
)
def test_nothing_else_is_a_cursor(text: str) -> None:
    given = base64.urlsafe_b64encode(text.encode()).decode()
    with pytest.raises(ValueError, match="is not a value of `next`"):
        cursor.decode(given, (str,))
