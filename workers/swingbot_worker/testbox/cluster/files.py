"""Names of the files of a boot of a cluster."""

from __future__ import annotations

from typing import Final

from swingbot_jobs.testbox.wire import CLIENT, SERVER
from swingbot_worker.testbox import driver

# Each node has its own QEMU arguments, which do not reproduce the boot alone, so both are prefixed.
OF_BOTH: Final = ("qemu.json",)
# Files of each driver to store; those of the server are prefixed with its role.
KEPT: Final = tuple(name for name in driver.FILES if name not in ("job.sh", *OF_BOTH))
FILES: Final = (
    *(f"{SERVER}.{name}" for name in (*KEPT, *OF_BOTH)),
    *(f"{CLIENT}.{name}" for name in OF_BOTH),
)
