"""Limits of requests to the pages and of what workers send.

Each comment says what a number limits, with its unit; a heading says what happens above it.
"""

from __future__ import annotations

from typing import Final

# --- Connections and requests: refused with the limit, or closed ---

# Bytes of the head of a request; seconds until it is complete.
HEAD_BYTES: Final = 32 << 10
HEAD_SECONDS: Final = 20.0
# Seconds for which a connection may be idle.
IDLE_SECONDS: Final = 15
# Seconds without a read of the response.
STALL_SECONDS: Final = 60.0
# Free places for each request; only those of the same client count.
PLACES_SHARE: Final = 4
# Streams at once, and a person's.
STREAMS: Final = 40
PERSON_STREAMS: Final = 6
# Processor seconds of the head of a request; the rest is measured.
REQUEST_SECONDS: Final = 0.002
# Bytes of the body of a request that sends no files.
FORM_BYTES: Final = 64 << 10
# Seconds of such a body.
BODY_SECONDS: Final = 60.0
# Seconds until the next piece of a body.
PIECE_SECONDS: Final = 60.0
# Seconds of a larger body.
UPLOAD_SECONDS: Final = 3600.0
# Bytes of an outcome.
OUTCOME_BYTES: Final = 8 << 20
# Bytes of a controller's phase.
PHASE_BYTES: Final = 1 << 14
# Parts of a form.
FORM_PARTS: Final = 200

# --- Names of hosts: cut ---

# Characters of a controller's host name.
HOST_CHARACTERS: Final = 100
