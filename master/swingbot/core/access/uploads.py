"""Upload limits of one attempt's token: files up to a cap, until the attempt has a result."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadLimits:
    """Limits of one attempt, and of all uploads at once."""

    files: int = 200
    size: int = 4 << 30  # bytes, of all its files together
    open_files: int = 16  # of all attempts
    open_files_each: int = (
        4  # a worker uploads one after the other; a second connection may outlive the first
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadUsage:
    """Uploads of an attempt so far. `over`: its result is stored, and its token is spent."""

    over: bool
    files: int
    size: int  # bytes


def refusal(brought: UploadUsage, more: int, cap: UploadLimits) -> str | None:
    """Why one more file of `more` bytes is refused, in one sentence; None if it is accepted."""
    if brought.over:
        return "this attempt has delivered its result; its token accepts nothing more"
    if brought.files >= cap.files:
        return f"this attempt has uploaded {brought.files} files, the limit of one attempt"
    if brought.size + more > cap.size:
        return f"the files of this attempt exceed {cap.size >> 20} MiB, the limit of one attempt"
    return None
