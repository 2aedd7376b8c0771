"""What the service `keys` does at each start: the master's certificate, and for each worker a directory with its own secret and no other.

A CA and secrets that are there stay; the certificate is made anew, so that it never gets old.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

from swingbot.adapters import certificates, worker_secrets

KEYS: Final = Path("/keys")
DAYS: Final = 1095
# Worker -> directory that this worker alone sees, as /keys.
WORKERS: Final = {"builder": "builder", "box-vm-icount": "testbox"}


def make(keys: Path) -> None:
    """Fill the directories below `keys`. Raises CertificateError, SecretError or OSError."""
    made = certificates.make(keys / "master", ("master",), DAYS)
    for worker, directory in WORKERS.items():
        secret = keys / "master" / "workers" / worker
        worker_secrets.make(secret)
        shutil.copyfile(secret, keys / directory / "secret")
        shutil.copyfile(made.ca, keys / directory / "ca.pem")


if __name__ == "__main__":
    os.umask(0o077)
    make(KEYS)
    print("the master has its certificate, and each worker its secret")  # noqa: T201 - the log of this container
