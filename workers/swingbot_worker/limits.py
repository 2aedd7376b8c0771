"""Limits of what builds, guests and testboxes may take and give.

Each comment says what a number limits, with its unit; a heading says what happens above it.
"""

from __future__ import annotations

from typing import Final

# --- Builds of kernels: stopped and retried ---

# Seconds of processor time without a finished object; as many as a full build of the configuration
# took are always allowed, because a link with optimisation finishes nothing for long.
BUILD_SPIN_CPU_SECONDS: Final = 1_800.0
# Seconds without any processor time; a host with load 100 gives some each second.
BUILD_IDLE_SECONDS: Final = 900.0
# MiB of the object directory; a distribution kernel with debug information needs about 10 GB.
BUILD_DISK_MIB: Final = 16_384
# Processes; make -j64 with a shell, ccache, compiler and assembler per job needs fewer than 400.
BUILD_PROCESSES: Final = 2_048
# MiB of a file; a sparse file counts with its full length.
BUILD_FILE_MIB: Final = 4_096
# MiB of temporary files of compilers and scripts, which count as memory.
BUILD_TMP_MIB: Final = 1_024
# MiB of the log; that of a full build with warnings is below 5 MB.
BUILD_LOG_MIB: Final = 64
# Files of the object directory: a kernel with every driver has about 120 000.
BUILD_FILES: Final = 1_000_000
# Levels of directories; a kernel has 12.
BUILD_DEPTH: Final = 64
# Bytes of the source; all files of Linux 6.18 together are 1.6 GB.
SOURCE_BYTES: Final = 8 << 30
# Bytes of memory, and of a file, of git with a source; a whole kernel history needs half.
GIT_BYTES: Final = 4 << 30
GIT_FILE_BYTES: Final = 20 << 30
# Bytes of a bzImage.
BZIMAGE_BYTES: Final = 512 << 20
# Bytes of System.map.
SYSTEM_MAP_BYTES: Final = 256 << 20
# Bytes of a preprocessed vmlinux.lds, which has 0.1 MB.
LINKER_SCRIPT_BYTES: Final = 4 << 20

# --- Files that a build made: deleted unread, or the build is retried ---

# Bytes of a file, else it is no part of a kernel.
KERNEL_FILE_BYTES: Final = 2_048 << 20
# Bytes of anonymous memory of the reader; a distribution kernel needs less than half.
KERNEL_READER_BYTES: Final = 1_536 << 20
# Seconds of processor time of the reader.
KERNEL_READER_CPU_SECONDS: Final = 900
# Seconds of the reader.
KERNEL_READER_SECONDS: Final = 1_200.0
# Bytes of a file that a reader writes; those of a distribution kernel have 40 MB.
READER_FILE_BYTES: Final = 256 << 20
# Bytes of a reader's answer.
READER_ANSWER_BYTES: Final = 4 << 20
# Bytes of what a reader prints.
READER_OUTPUT_BYTES: Final = 64 << 10
# Seconds in which the functions of all objects are read; a full build takes some.
FUNCTIONS_SECONDS: Final = 600.0
# Entries of a table of an ELF file; the vmlinux of a distribution has about 300 000 symbols.
ELF_ENTRIES: Final = 4_000_000
# Bytes that are read of an ELF file. Sections do not overlap, so larger totals are invalid.
ELF_BYTES: Final = 1 << 30
# Bytes of a symbol's name (the kernel's KSYM_NAME_LEN is 512).
SYMBOL_NAME_BYTES: Final = 4_096
# Bytes of all names together, which may overlap in the file; a distribution has 30 MB.
SYMBOL_NAMES_BYTES: Final = 256 << 20
# Bytes of a member of an archive of objects.
ARCHIVE_MEMBER_BYTES: Final = 256 << 20
# Bytes of the remembered hashes of objects, which a trusted build can write.
OBJECT_HASHES_BYTES: Final = 16 << 20

# --- Sources of programs: refused ---

# Bytes of a source; netperf 2.7.0, the largest, unpacks to 8 MB in 300 files.
PROGRAM_BYTES: Final = 64 << 20
# Bytes of a source file.
PROGRAM_FILE_BYTES: Final = 16 << 20
# Files of a source.
PROGRAM_FILES: Final = 10_000
# Levels of its directories.
PROGRAM_DEPTH: Final = 16
# Seconds of the build of a program.
PROGRAM_SECONDS: Final = 600.0
# Bytes of a binary.
BINARY_BYTES: Final = 64 << 20

# --- Boots: stopped and retried ---

# Bytes of the console. A boot prints 13 kB, an oops some more.
CONSOLE_BYTES: Final = 1 << 20
# Bytes of a console that carries results: each line twice, 89 bytes long, and kernel messages.
CONSOLE_RESULTS_BYTES: Final = 40 << 20
# Lines of base64 on it.
CONSOLE_RESULTS_LINES: Final = 200_000
# Bytes of memory to unpack them; xz -6 needs 9 MiB.
CONSOLE_UNPACKER_BYTES: Final = 32 << 20
# Bytes of memory of the reader of results; 128 MB of text need up to four times as much.
RESULTS_READER_BYTES: Final = 768 << 20
# Seconds of processor time of the reader of results.
RESULTS_READER_CPU_SECONDS: Final = 60
# Seconds of the reader of results.
RESULTS_READER_SECONDS: Final = 120.0
# Bytes of a kernel unpacked to find its configuration; of memory for it, xz of Linux needs 33 MiB.
UNPACKED_KERNEL_BYTES: Final = 256 << 20
UNPACKER_BYTES: Final = 128 << 20

# --- What is printed: the rest is cut ---

# Bytes of the output of a program.
OUTPUT_BYTES: Final = 64 << 20
# Bytes of the output of make.
MAKE_OUTPUT_BYTES: Final = 16 << 20
# Bytes of a testbox's answer over SSH.
ANSWER_BYTES: Final = 1 << 20
# Characters of a line of the console in a verdict.
CONSOLE_LINE_CHARACTERS: Final = 300
# Characters of an error of a compiler or a reader.
ERROR_CHARACTERS: Final = 500
# Characters of the command that compiled an object.
COMMAND_CHARACTERS: Final = 1 << 20
