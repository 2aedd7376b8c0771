"""Which values of a metric are better; apart from programs, as reading results needs no more."""

from __future__ import annotations

from typing import Literal

Better = Literal["higher", "lower"]
