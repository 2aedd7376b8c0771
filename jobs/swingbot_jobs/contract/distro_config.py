"""Read the kernel configuration of a distribution, such as `/boot/config-RELEASE`.

It is the .config of one kernel and one architecture: lines `CONFIG_NAME=VALUE`, and comments.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Final

from swingbot_jobs.limits import KCONFIG_BYTES

# Where absolute paths may lead; relative ones are in the directory of the configurations.
BOOT = Path("/boot")
_PATH: Final = re.compile(r"[A-Za-z0-9/._+-]{1,200}")
_LINE: Final = re.compile(r"CONFIG_\w+=.*|#.*|\s*")
_TITLE: Final = re.compile(r"^# Linux/(\S{1,40}) .{0,100}Kernel Configuration$", re.MULTILINE)
_NEEDED: Final = "CONFIG_X86_64=y"


class NoDistroConfig(ValueError):
    """The file cannot be used; the message says why, and what to do."""


def read(path: str, directory: Path) -> str:
    """Return the text of the configuration at `path`, absolute or below `directory`.

    Raises NoDistroConfig for a file that is missing, outside both directories (links are followed),
    not a configuration, for an architecture other than x86_64, or larger than `KCONFIG_BYTES`.
    """
    return checked(_content(_real_path(path, directory)).decode(errors="replace"))


def checked(text: str) -> str:
    """Return `text`. Raises NoDistroConfig unless it is a configuration of an x86_64 kernel."""
    lines = text.split("\n")
    strange = next((n for n, line in enumerate(lines, 1) if not _LINE.fullmatch(line)), None)
    if strange is not None or not any(line.startswith("CONFIG_") for line in lines):
        where = f" (line {strange})" if strange else ""
        raise NoDistroConfig(
            f"it is not a kernel configuration{where}; unpack it if it is compressed, or name the "
            "file config-RELEASE of the distribution's kernel package"
        )
    if _NEEDED not in lines:
        title = _TITLE.search(text)
        raise NoDistroConfig(
            f"it lacks {_NEEDED}{f' (it is for {title[1]})' if title else ''}; name the "
            "configuration of an x86_64 kernel"
        )
    return text


def _real_path(path: str, directory: Path) -> Path:
    """Return the real path of the file, which is below `BOOT` or `directory`."""
    root = BOOT if path.startswith("/") else directory
    if not _PATH.fullmatch(path):
        raise NoDistroConfig("the path may have letters, digits and ._+-/ only")
    try:
        real, within = (root / path).resolve(strict=True), root.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or "a loop of links"
        raise NoDistroConfig(
            f"it cannot be found ({why}); the file must be on each host that builds, and on the "
            f"service's: copy it to {directory}"
        ) from None
    if not real.is_relative_to(within):
        raise NoDistroConfig(
            f"it is in neither {BOOT} nor {directory}, or a link leads out of there; copy the "
            f"file to {directory}"
        )
    return real


def _content(path: Path) -> bytes:
    content, size = b"", 0
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise NoDistroConfig("it is not a file")
            size = os.fstat(descriptor).st_size
            if size <= KCONFIG_BYTES:
                with open(descriptor, "rb", closefd=False) as file:
                    content = file.read(KCONFIG_BYTES + 1)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise NoDistroConfig(f"it cannot be read ({error.strerror})") from None
    if max(size, len(content)) > KCONFIG_BYTES:
        raise NoDistroConfig(
            f"it has {size} bytes, and a kernel configuration at most {KCONFIG_BYTES}"
        )
    return content
