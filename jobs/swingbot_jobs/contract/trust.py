"""Trust levels of kernels, and which testboxes accept which level. Pure.

`trusted`: from a tree whose owners the operator trusts fully.
`untrusted`: from anyone, such as a patch from a mail. Its build runs behind walls or not at all,
a trusted build never uses its output, and it boots only on testboxes that accept it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final, Literal

Trust = Literal["trusted", "untrusted"]
LEVELS: Final[tuple[Trust, ...]] = ("trusted", "untrusted")


def least(levels: Iterable[Trust]) -> Trust:
    """Return the level of something that has several parts."""
    return "untrusted" if "untrusted" in set(levels) else "trusted"


def accepted(kernel: Trust, accepts: Trust) -> bool:
    """Return True if a testbox that accepts `accepts` may boot a kernel of level `kernel`."""
    return kernel == "trusted" or accepts == "untrusted"


def key_at(build_key: str, trust: Trust) -> str:
    """Return the build key at a level.

    Untrusted builds have another key, so that neither level finds the other's kernels.
    """
    return (
        build_key
        if trust == "trusted"
        else hashlib.sha256(f"untrusted {build_key}".encode()).hexdigest()
    )
