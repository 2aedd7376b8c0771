"""Entry point of the service `keys`: the master's certificate, and a secret for each worker.

Each worker gets a directory with only its own secret, the service `exchange` one with the
certificate and its key. Existing CA and secrets are kept; the certificate is created at each start,
so that it never expires.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

from swingbot.adapters import certificates, worker_secrets

KEYS: Final = Path("/keys")
DAYS: Final = 1095
# Worker -> its directory, which only this worker sees, as /keys.
WORKERS: Final = {"builder": "builder", "testbox-vm-icount": "testbox"}


def make(keys: Path, name: str = "master") -> None:
    """Fill the directories below `keys`; `name` is the master's, as other hosts resolve it.

    Raises CertificateError, SecretError or OSError.
    """
    paths = certificates.make(keys / "master", ("master", name), DAYS)
    for worker, directory in WORKERS.items():
        secret = keys / "master" / "workers" / worker
        worker_secrets.make(secret)
        shutil.copyfile(secret, keys / directory / "secret")
        shutil.copyfile(paths.ca, keys / directory / "ca.pem")
    if name != "master":
        for file in (paths.certificate, paths.key):
            shutil.copy(file, keys / "exchange")


if __name__ == "__main__":
    os.umask(0o077)
    make(KEYS, os.environ["SWINGBOT_BUILDBOT_ADDRESS"])
    print("created the master's certificate and the workers' secrets")  # noqa: T201 - container log
