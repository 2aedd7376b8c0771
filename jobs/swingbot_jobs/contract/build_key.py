"""The build key, which identifies the kernel of a build; master and worker compute the same one."""

from __future__ import annotations

import hashlib
import json


def build_key(
    tree_hash: str, kconfig_name: str, fragment_text: str, compiler: str, layout: int
) -> str:
    """Return the build key, 64 hex digits that depend on the inputs of a kernel build alone.

    A key is never built twice.

    `tree_hash` is git's id of the commit's tree (`git rev-parse COMMIT^{tree}`),
    not of the commit: two commits of equal contents are one kernel.
    `fragment_text` is the text of workers/kconfig/<name>.config, followed by those of the fragments
    that the name adds to it (see kconfig.py). The exact compiler version is not part of it:
    only the worker knows that.
    """
    fragment = hashlib.sha256(fragment_text.encode()).hexdigest()
    canonical = json.dumps(
        [tree_hash, [kconfig_name, fragment], compiler, layout], separators=(",", ":")
    )
    return hashlib.sha256(canonical.encode()).hexdigest()
