"""How likely a commit is to be the culprit before anything was measured, and how dear its build will be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

# A commit that touches no code of the kernel under test keeps a floor: build scripts and Kconfig have been guilty before.
UNLIKELY: Final = 0.05
_NO_CODE: Final = ("Documentation/", "LICENSES/", "samples/", "tools/", ".mailmap", "MAINTAINERS", "CREDITS")
# How many objects a changed file rebuilds, as a share of a full build.
_HEADER_SHARE: Final = 0.7
_OTHER_SHARE: Final = 0.03


def weight(paths: Sequence[str], arch: str = "x86") -> float:
    """Prior mass of a commit that changes `paths`, relative to 1 for one that touches code of this architecture."""
    return 1.0 if any(_is_code(path, arch) for path in paths) else UNLIKELY


def _is_code(path: str, arch: str) -> bool:
    if path.startswith(_NO_CODE):
        return False
    return not path.startswith("arch/") or path.startswith(f"arch/{arch}/")


def build_share(paths: Sequence[str]) -> float:
    """Share of a full build that an incremental build of this change costs: a header under include/ rebuilds most of the kernel."""
    if any((path.endswith(".h") and path.startswith(("include/", "arch/"))) or path.endswith(("Kconfig", "Makefile")) for path in paths):
        return _HEADER_SHARE
    return _OTHER_SHARE
