"""Limits of the processes of the service and of the command line.

Each comment says what a number limits, with its unit; a heading says what happens above it.
"""

from __future__ import annotations

from typing import Final

# --- Clients of the service: refused, or disconnected ---

# Requests to the pages at once.
CONNECTIONS: Final = 200
# Files, bytes and uploads at once of one attempt of a worker.
ATTEMPT_FILES: Final = 200
ATTEMPT_BYTES: Final = 4096 << 20
OPEN_UPLOADS: Final = 16
# Seconds of a query of `/metrics`.
METRICS_SECONDS: Final = 5
# Seconds of a statement or transaction of Grafana.
READER_SECONDS: Final = 30.0
# Connections of strangers to the local mail server; they lose the oldest.
SMTP_STRANGERS: Final = 16
# Seconds for which a connection to it may be silent.
SMTP_IDLE_SECONDS: Final = 30.0
# Clients of the git server.
GIT_CLIENTS: Final = 16
# Seconds for which one may be silent; the first pack of a kernel tree takes minutes.
GIT_IDLE_SECONDS: Final = 600
# Processor seconds of packing for one; a whole kernel history takes a few minutes.
PACKING_SECONDS: Final = 1800.0

# --- Files and programs given to commands: refused ---

# Bytes of a file that describes a table.
TABLE_FILE_BYTES: Final = 1 << 20
# Bytes of samples for `swingbot stats`.
STATS_BYTES: Final = 64 << 20
# Bytes of a journal for `swingbot bisect replay`.
JOURNAL_BYTES: Final = 1 << 30
# Bytes of a login, b4's record, or a service's answer.
LOGIN_BYTES: Final = 4096
TRACKING_BYTES: Final = 16 << 20
ANSWER_BYTES: Final = 256 << 20
# Pieces of a document.
ANSWER_PIECES: Final = 10_000
# Bytes that `raw` or `reproduce` writes.
OUTPUT_BYTES: Final = 16 << 30
# Characters of the service's address.
ADDRESS_CHARACTERS: Final = 2000
# Numbers that `bisect run`'s command prints.
BOOT_VALUES: Final = 10_000
# Bytes of its output and of its errors.
COMMAND_BYTES: Final = 64 << 20
# Bytes of a hashed file of its command.
COMMAND_FILE_BYTES: Final = 64 << 20
