"""Kernel builds of several keys."""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa

from .rows import Row, rows

_BUILDS = (
    "SELECT build_key, status, image_sha256, compiler_version, files FROM kernel_build"
    " WHERE build_key = ANY(:keys)"
)


def kernel_builds(conn: sa.Connection, keys: Iterable[str]) -> dict[str, Row]:
    """Existing builds of `keys`: build_key, status, image_sha256, compiler_version, files."""
    return {row["build_key"]: row for row in rows(conn, _BUILDS, keys=list(keys))}
