"""What the token of one attempt may bring: files up to a cap, until the attempt has a result; then nothing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadLimits:
    """The most that one attempt may bring, and that all may be bringing at once."""

    files: int = 200
    size: int = 4 << 30  # bytes, of all its files together
    open_files: int = 16  # of all attempts
    open_files_each: int = (
        4  # a worker brings one after the other; a second connection may outlive the first
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadUsage:
    """What an attempt has brought so far. `over`: its result is stored, so its token writes nothing more."""

    over: bool
    files: int
    size: int  # bytes


def refusal(brought: UploadUsage, more: int, cap: UploadLimits) -> str | None:
    """Why one more file of `more` bytes is not taken, in one sentence; None if it is."""
    if brought.over:
        return "this attempt has brought its result; its token writes nothing more"
    if brought.files >= cap.files:
        return f"this attempt has brought {brought.files} files, the most that are taken of one (web.attempt_files)"
    if brought.size + more > cap.size:
        return f"the files of this attempt are together larger than {cap.size >> 20} MiB, the most that is taken of one (web.attempt_mib)"
    return None
