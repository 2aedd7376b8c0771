"""Limits of what a page asks of the database.

Each comment says what a number limits, with its unit; a heading says what happens above it.
"""

from __future__ import annotations

from typing import Final

# --- Visitors of Grafana: their sessions end ---

# Bytes of memory of all sessions; a panel's session uses about 10 MB.
READER_BYTES: Final = 256 << 20
# Share of the notification queue; a full one stops the service.
QUEUE_SHARE: Final = 0.01
# Reads of notifications in a row; after these, the listener starts over.
NOTIFICATIONS: Final = 1000

# --- Questions of pages: the rest is left out, and the page says so ---

# Characters of a search.
SEARCH_CHARACTERS: Final = 200
# Boots times metrics that a page judges.
JUDGED_VALUES: Final = 150_000
# Kernels that a name may mean.
NAMED_KERNELS: Final = 20
