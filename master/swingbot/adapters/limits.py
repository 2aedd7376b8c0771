"""Limits of what repositories, archives, workers and files may give, and of the time they get.

Each comment says what a number limits, with its unit; a heading says what happens above it.
"""

from __future__ import annotations

from typing import Final

# --- Files: refused ---

# Bytes of an artifact; a kernel image is 10 to 200 MB.
ARTIFACT_BYTES: Final = 1 << 30
# Frames of a compressed artifact.
ARTIFACT_FRAMES: Final = 1 << 20
# Bytes of the patch of a commit, and of each file that get_maintainer.pl reads.
PATCH_BYTES: Final = 16 << 20
# Bytes of a file after a patch; the largest of Linux has 23 MB.
PATCHED_FILE_BYTES: Final = 32 << 20
# Bytes of all files that a patch, and a series, changes, copies or renames: copying one takes two
# lines, and the memory of git holds all files of a patch.
TOUCHED_BYTES: Final = 512 << 20
SERIES_TOUCHED_BYTES: Final = 1 << 30
# Bytes and parts of a changed path; Linux has 110 and 12.
CHANGED_PATH_BYTES: Final = 1000
CHANGED_PATH_PARTS: Final = 50
# Bytes of a fetch; a whole kernel history has 5 GiB.
FETCH_BYTES: Final = 20 << 30
# Bytes of the samples of a boot; 100 runs of 100 metrics have less than 1 MiB.
RESULT_ANSWER_BYTES: Final = 16 << 20

# --- Programs that read what is not trusted: ended, and the input is refused ---

# Bytes of memory of git, with a patch, and in a fetch; a whole kernel history needs half of it.
GIT_BYTES: Final = 2 << 30
PATCHING_BYTES: Final = 1 << 30
FETCHING_BYTES: Final = 4 << 30
# Bytes of a file or an output of git.
GIT_FILE_BYTES: Final = 256 << 20
# Processor seconds of git that writes a patch, and seconds with a series.
PATCH_SECONDS: Final = 30.0
SERIES_SECONDS: Final = 300.0
# Processor seconds of git that reads a bundle.
UNBUNDLING_SECONDS: Final = 10.0
# Bytes of memory of the reader of results; those of the largest jobs need a tenth of it.
RESULT_READER_BYTES: Final = 768 << 20
# Seconds of the reader of results.
RESULT_READER_SECONDS: Final = 120.0
# Bytes of memory and seconds of the reader of mails; a series of 32 MiB needs half of them.
MAIL_READER_BYTES: Final = 256 << 20
MAIL_READER_SECONDS: Final = 30.0
# Bytes of memory of the reader of kernel records, two of which take 600 MB; processor seconds of a
# question, and bytes of its answer.
RECORD_READER_BYTES: Final = 1 << 30
RECORD_READER_SECONDS: Final = 20.0
RECORD_ANSWER_BYTES: Final = 8 << 20
# MiB of memory, KiB of output and seconds of get_maintainer.pl.
MAINTAINERS_MEMORY_MIB: Final = 512
MAINTAINERS_OUTPUT_KIB: Final = 256
MAINTAINERS_SECONDS: Final = 30.0
# Seconds of a fetch; a whole kernel history takes half an hour over a slow line.
FETCH_SECONDS: Final = 3600.0
# Seconds for which `swingbot forget` waits until no request may need the objects.
FORGET_SECONDS: Final = 600.0
# Seconds in which a remote names its tips, so that it does not keep others from being polled.
TIP_SECONDS: Final = 60.0
# Seconds in which a page learns where commits are; 150 000 commits take 2.
PLACES_SECONDS: Final = 10.0
# Seconds of the search for a mail in a list archive.
ARCHIVE_SECONDS: Final = 20.0

# --- Searches: the rest is not read ---

# Commits of an archive that are examined.
ARCHIVE_COMMITS: Final = 2_000
# Bytes of a mail in an archive, for its headers.
ARCHIVED_MAIL_BYTES: Final = 64 << 10
# Bytes of a part's heartbeat.
HEARTBEAT_BYTES: Final = 200
