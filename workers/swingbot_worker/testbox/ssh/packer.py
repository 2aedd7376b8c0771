"""The packer of results that leave a testbox over its console: xz of this host.

Its window of 8 MiB reaches from one snapshot of a monitor to the next, which repeats most of it;
that of gzip, 32 KiB, does not reach across /proc/interrupts of a server.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from swingbot_worker import InfraError
from swingbot_worker.rootfs import cpio, libraries

# Directory in the guest, outside of the root file system that is measured.
DIRECTORY: Final = "ssh/packer"
PRESET: Final = 6


def entries(cache: Path) -> Sequence[cpio.Entry]:
    """Return xz and its libraries for the guest. `cache` keeps the answers of ldd.

    Raises InfraError if xz is not installed.
    """
    if (found := shutil.which("xz")) is None:
        raise InfraError("xz is not on this worker; install Debian's xz-utils.")
    program = Path(found).resolve()
    own = [
        cpio.file(f"{DIRECTORY}/{name}", path.read_bytes(), executable=True)
        for name, path in libraries.needed(program, cache)
        if name.startswith("liblzma")  # the others are in every root file system
    ]
    return [cpio.file(f"{DIRECTORY}/xz", program.read_bytes(), executable=True), *own]
