"""Limits of what people request and of what goes into the database and into kits.

Each comment says what a number limits, with its unit; a heading says what happens above it.
"""

from __future__ import annotations

from typing import Final

# --- Requests: refused ---

# Rows or patches of a table over the web; git applies each while other requests wait.
WEB_ROWS: Final = 50
# Commits of a bisection over the web; each has a row, and takes git 10 ms.
WEB_BISECTED_COMMITS: Final = 2000
# Skips and hints of a bisection over the web.
WEB_STEERS: Final = 200
# Boots of resumed bisections.
RESUMED_BOOTS: Final = 10_000

# --- Access: the oldest go ---

# Logged sign-ins: of a token (and sign-outs and requests), or strangers' refused ones.
ACCESS_EVENTS: Final = 1000
# Sessions of a token.
SESSIONS: Final = 20
# Answers kept for a person; bytes of each.
KEPT_ANSWERS: Final = 200
KEPT_ANSWER_BYTES: Final = 64 << 10

# --- Results: the run fails, or the file is left out with a note ---

# Characters of a metric's full name; an index entry of PostgreSQL has 2704 bytes at most.
METRIC_CHARACTERS: Final = 255
# Patches of a branch that are listed; older ones are history.
LISTED_PATCHES: Final = 500
# Bytes of all kernel images of a kit; build.sh builds larger ones.
KIT_IMAGE_BYTES: Final = 64 << 20
# Bytes of all patches of a kit; and processor seconds, after which none is begun.
KIT_PATCH_BYTES: Final = 16 << 20
KIT_PATCH_SECONDS: Final = 120.0
# Bytes of a record or a job's archive, which is read as a whole.
RECORD_BYTES: Final = 16 << 20
# Bytes of a kernel's list of objects; a VM has 115 KB.
OBJECT_LIST_BYTES: Final = 4 << 20
