"""Limits of input to decisions: series of patches, commits, requests of people, numbers.

Each comment says what a number limits, with its unit; a heading says what happens above it.
"""

from __future__ import annotations

from typing import Final

# --- A series of patches: refused ---

# Bytes of all files of a series.
SERIES_BYTES: Final = 32 << 20
# Patches of a series; larger ones are vendor trees, which are fetched as a branch.
SERIES_PATCHES: Final = 1000
# Mails of a series, or files of its directory; cover letters and replies count.
SERIES_MAILS: Final = 5000
# Lines of quilt's file `series`, comments included.
QUILT_LINES: Final = 20_000
# Lines of a mail's headers; mails in list archives have about a hundred.
MAIL_HEADER_LINES: Final = 2000
# Bytes of a header; those in the text of a mail count.
MAIL_HEADER_BYTES: Final = 4 << 10
# Bytes of all headers of a file.
MAILS_HEADER_BYTES: Final = 4 << 20
# Bytes of the head, objects and commits of a bundle.
BUNDLE_HEAD_BYTES: Final = 64 << 10
BUNDLE_OBJECTS: Final = 20_000
BUNDLE_COMMITS: Final = 200
# Commits in a question which are known.
ASKED_COMMITS: Final = 500
# Parts of a mail.
MAIL_PARTS: Final = 200
# Levels to which parts of a mail nest.
MAIL_PART_DEPTH: Final = 8
# Levels of mails attached to mails.
MAIL_DEPTH: Final = 3
# Characters of a patch's subject.
PATCH_SUBJECT_CHARACTERS: Final = 1000
# Bytes of a patch's message, which is shown on pages.
PATCH_MESSAGE_BYTES: Final = 256 << 10

# --- Tables of kernels: refused ---

# Rows of a table.
TABLE_ROWS: Final = 200
# Boots of a row, extensions included.
TABLE_BOOTS: Final = 1000
# Combinations of its axes before exclusions.
TABLE_COMBINATIONS: Final = 100_000
# Characters of a row's name.
ROW_NAME_CHARACTERS: Final = 200
# Highest number of a layout.
LAYOUTS: Final = 1000
# Looks that a request states; each spends an equal share of the error rate.
LOOKS: Final = 20
# Smallest change of interest, in percent.
EFFECT_PCT: Final = (0.01, 100.0)

# --- Other requests: refused ---

# Characters of a field or query.
FIELD_CHARACTERS: Final = 300
# Values of a filter of results; mails looked up.
QUERY_VALUES: Final = 40
# Kernels, and functions, looked up; a source has a few hundred functions.
RESULT_KERNELS: Final = 6
COVERED_FUNCTIONS: Final = 2000
# Requests of a person a day.
DAILY_REQUESTS: Final = 200
# Seconds of planning requests of a person in 24 hours.
PLANNING_SECONDS: Final = 3600.0

# Characters of a person's reason, or name of a commit; of a testbox's state the rest is cut.
WHY_CHARACTERS: Final = 500
COMMIT_NAME_CHARACTERS: Final = 100
# Bytes of a mail to the local mail server, or read for its page; swingbot's own are below 10 KB.
MAIL_BYTES: Final = 1 << 20
# Characters of a repository's address.
REPOSITORY_CHARACTERS: Final = 1000
# Days for which a token is valid.
TOKEN_DAYS: Final = 3650
# Values of a side, or lines of a history, given to `swingbot stats`.
STATS_VALUES: Final = 1_000_000
# Characters of a line of a journal: a first step of a million commits has fewer.
JOURNAL_LINE_CHARACTERS: Final = 50_000_000

# --- Commits, results and clients: the rest is left out ---

# Characters of a commit's message searched for addresses.
COMMIT_MESSAGE_CHARACTERS: Final = 200_000
# People whom the trailers of a commit name.
TRAILER_PEOPLE: Final = 20
# Characters of an address that git or get_maintainer.pl gives.
ADDRESS_CHARACTERS: Final = 100
# Lines of get_maintainer.pl.
MAINTAINER_LINES: Final = 500
# Commits searched for the end of a series.
SERIES_COMMITS: Final = 300
# Functions counted in one run; each becomes a metric.
COUNTED_FUNCTIONS: Final = 1500
# Characters of the names of counted functions, which form one environment variable.
COUNTED_CHARACTERS: Final = 60_000
# Commits of a kernel whose patches are in a kit.
KIT_COMMITS: Final = 50
# Metric names of a unit job on a testbox; those that only untrusted kernels reported have a
# limit of their own. The monitors of a machine with 256 CPUs, 640 interrupts and 8 nodes give 4000.
METRIC_NAMES: Final = 24_000
# Judged counters of a comparison on a testbox; a usual machine has 350.
JUDGED_COUNTERS: Final = 500
# Metrics judged for a page, each on one testbox.
JUDGED_METRICS: Final = 400
# Bytes of a raw result that is read into memory; results.tar has larger ones.
RAW_FILE_BYTES: Final = 64 << 20
# Values of a record of a boot; a root file system of 10 000 files has 120 000.
RECORD_VALUES: Final = 300_000
# Parts of the path of a raw result.
RAW_PATH_PARTS: Final = 8
# Clients whose rate is remembered; beyond, the one that asked longest ago is forgotten.
CLIENTS: Final = 20_000
# Rows of a table in one answer; a cursor has the rest.
PIECE_ROWS: Final = 500
# Characters of a cursor.
CURSOR_CHARACTERS: Final = 4000
