"""Files uploaded by an attempt, and whether it may upload more."""

from __future__ import annotations

import sqlalchemy as sa

from swingbot.core.access.uploads import UploadLimits, UploadUsage, refusal

_BROUGHT = """
SELECT a.state = 'ended' OR a.late IS NOT NULL AS over, f.files, f.size
FROM attempt a, LATERAL (SELECT count(*) AS files, coalesce(sum(bytes), 0) AS size FROM attempt_file
  WHERE attempt = a.id AND sha256 <> :sha256) f
WHERE a.id = :attempt
"""


def brought(
    conn: sa.Connection, attempt: int, sha256: str, *, lock: bool = False
) -> UploadUsage | None:
    """Uploads of `attempt` apart from the file `sha256`; None if the attempt does not exist.

    `lock` serializes uploads and outcome of an attempt.
    """
    row = conn.execute(
        sa.text(_BROUGHT + ("FOR UPDATE OF a" if lock else "")),
        {"attempt": attempt, "sha256": sha256},
    ).one_or_none()
    return None if row is None else UploadUsage(over=row.over, files=row.files, size=int(row.size))


def admit(
    conn: sa.Connection, attempt: int, sha256: str, size: int, cap: UploadLimits
) -> str | None:
    """Count a file of `size` bytes against the cap of its attempt; return the refusal or None.

    The same file counts once.
    """
    uploads = brought(conn, attempt, sha256, lock=True)
    refused = "this attempt does not exist" if uploads is None else refusal(uploads, size, cap)
    if refused is None:
        add = (
            "INSERT INTO attempt_file (attempt, sha256, bytes) VALUES (:attempt, :sha256,"
            " :bytes) ON CONFLICT DO NOTHING"
        )
        conn.execute(sa.text(add), {"attempt": attempt, "sha256": sha256, "bytes": size})
    return refused
