"""Commits as a git bundle of version 2 (gitformat-bundle(5)): what it has, and what it builds on.

The pack behind the head is git's to read; here only its frame is checked.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from swingbot.core.limits import BUNDLE_HEAD_BYTES, BUNDLE_OBJECTS

_SIGNATURE: Final = b"# v2 git bundle\n"
_PREREQUISITE: Final = re.compile(rb"-([0-9a-f]{40})(?: .*)?", re.DOTALL)
_TIP: Final = re.compile(rb"([0-9a-f]{40}) [!-~]{1,200}")
_PACK: Final = ">4sII"  # PACK, its version, its number of objects
_DIGEST_BYTES: Final = 20


class BadBundle(ValueError):
    """It is not a bundle, or too large; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """`tips` and what they need beyond `prerequisites`, all full commit ids."""

    tips: tuple[str, ...]
    prerequisites: tuple[str, ...]
    pack: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SentCommits:
    """The commits that a request from a checkout names; the bundle has those that were missing."""

    names: Mapping[str, str] = field(default_factory=dict)  # as the request has them -> commit
    bundle: Bundle | None = None


def read_bundle(data: bytes) -> Bundle:
    """Raises BadBundle."""
    if not data.startswith(_SIGNATURE):
        raise BadBundle("it is not a git bundle of version 2; make it with `git bundle create`")
    end = data.find(b"\n\n", 0, BUNDLE_HEAD_BYTES)
    if end < 0:
        raise BadBundle(
            f"it is cut off, or its head has more than {BUNDLE_HEAD_BYTES >> 10} KiB; rebase"
            " the commits and send them again"
        )
    lines = data[len(_SIGNATURE) : end].split(b"\n")
    needed = [match for line in lines if (match := _PREREQUISITE.fullmatch(line))]
    tips = [match for line in lines[len(needed) :] if (match := _TIP.fullmatch(line))]
    if len(needed) + len(tips) != len(lines) or not tips:
        raise BadBundle("its head is malformed; make it with `git bundle create`")
    pack = data[end + 2 :]
    _check_pack(pack)
    return Bundle(tips=_ids(tips), prerequisites=_ids(needed), pack=pack)


def written(bundle: Bundle) -> bytes:
    """Return the bundle as a file; git names its tips commits/0, commits/1, ..."""
    head = [f"-{commit}" for commit in bundle.prerequisites]
    head += [f"{tip} refs/commits/{number}" for number, tip in enumerate(bundle.tips)]
    return _SIGNATURE + "\n".join([*head, "", ""]).encode() + bundle.pack


def _check_pack(pack: bytes) -> None:
    if len(pack) < struct.calcsize(_PACK) + _DIGEST_BYTES:
        raise BadBundle("it is cut off: it has no pack; send it again")
    magic, version, objects = struct.unpack_from(_PACK, pack)
    if magic != b"PACK" or version != 2:
        raise BadBundle("it has no pack of version 2; make it with `git bundle create`")
    if objects > BUNDLE_OBJECTS:
        raise BadBundle(
            f"it has {objects} objects; at most {BUNDLE_OBJECTS} are accepted. Ask an operator"
            " to fetch the commits as a branch"
        )
    if hashlib.sha1(pack[:-_DIGEST_BYTES]).digest() != pack[-_DIGEST_BYTES:]:
        raise BadBundle("it is cut off or damaged: its pack has another checksum; send it again")


def _ids(matches: Sequence[re.Match[bytes]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(match[1].decode() for match in matches))
