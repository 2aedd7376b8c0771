"""Limits of input: job files, testbox files, and what guests and workers send.

Each comment says what a number limits, with its unit; a heading says what happens above it.
"""

from __future__ import annotations

from typing import Final

# --- Job and testbox files: an error with file and line ---

# Characters of a YAML file with what it includes; 30 KB are parsed in a second.
YAML_CHARACTERS: Final = 64 * 1024
# Values of a YAML file. Aliases count each time they are used: a few lines can expand to billions.
YAML_VALUES: Final = 20_000
# Levels to which a YAML file nests.
YAML_DEPTH: Final = 20
# Levels to which job files include each other.
INCLUDE_DEPTH: Final = 8
# Characters of an expression `{{ }}`.
EXPRESSION_CHARACTERS: Final = 200
# Result of each step of an expression, so that none takes long.
EXPRESSION_RESULT: Final = 10**30
# Number passed to a program. Larger ones are mistakes and break shell arithmetic.
PROGRAM_NUMBER: Final = 10**15
# Unit jobs of a job.
UNIT_JOBS: Final = 1000
# Runs of a unit job in one boot.
RUNS: Final = 1000
# Events of a job.
JOB_EVENTS: Final = 40
# Fragments added to a kernel configuration.
KCONFIG_FRAGMENTS: Final = 4
# Bytes of the command line on x86, its NUL included (arch/x86/include/asm/setup.h).
COMMAND_LINE_BYTES: Final = 2048
# Characters of the driver's own words on it: console, panic, perturbation, the boot's token.
DRIVER_CHARACTERS: Final = 400
# Characters of the words of a job on it.
CMDLINE_CHARACTERS: Final = 1024
# A job's words on it. The kernel panics when it hands more than 32 words that it does not
# know to init (CONFIG_INIT_ENV_ARG_LIMIT), and that panic would be held against the kernel under
# test.
CMDLINE_WORDS: Final = 24
# Sysctls of a job.
SYSCTLS: Final = 64
# Characters of the name or value of a sysctl.
SYSCTL_CHARACTERS: Final = 255
# Characters of a tuning probe's output; the rest is cut.
TUNING_CHARACTERS: Final = 256 * 1024

# --- Results of a run: the run fails with the reason ---

# Characters of a profile, or of perf stat's intervals.
PERF_CHARACTERS: Final = 8 << 20
# Characters of perf stat's totals.
PERF_STAT_CHARACTERS: Final = 1 << 20
# Characters of a line of perf stat; longer lines of totals are left out.
PERF_STAT_LINE_CHARACTERS: Final = 2000
# Events of perf stat.
PERF_STAT_EVENTS: Final = 2000
# Intervals of perf stat.
PERF_STAT_INTERVALS: Final = 10_000
# Shares of a profile.
PROFILE_SHARES: Final = 100_000
# Snapshots of a monitor.
SNAPSHOTS: Final = 100_000
# Keys of a snapshot: 640 interrupts of a machine with 256 CPUs, on each of them.
SNAPSHOT_KEYS: Final = 200_000
# Statistics in a file of LKP.
LKP_STATISTICS: Final = 20_000
# Metrics of a run; function-profile lists 3900 functions.
RUN_METRICS: Final = 4_000
# Values of a metric in a run.
METRIC_VALUES: Final = 10_000
# Sample value; a variance of larger ones overflows, in PostgreSQL too.
SAMPLE_VALUE: Final = 1e100

# --- Results of a boot: cut, or left out with a note ---

# Files in the results of a boot; a run writes a few kB in all.
RESULT_FILES: Final = 100_000
# Bytes of a result file; two snapshots of 640 interrupts of 256 CPUs have 3.8 MB, 0.9 MB without
# padding.
RESULT_FILE_BYTES: Final = 4 << 20
# Bytes of all result files that are read.
RESULT_BYTES: Final = 128 << 20
# Bytes of the archive of results; nothing of a larger one is read.
RESULT_ARCHIVE_BYTES: Final = 256 << 20
# Notes about what was left out.
RESULT_NOTES: Final = 20
# Characters of a metric's name.
METRIC_NAME_CHARACTERS: Final = 200
# Characters of the reason of a run, a build or a boot.
REASON_CHARACTERS: Final = 2000
# Characters of a line of a profile, and of one that begins an event.
PROFILE_LINE_CHARACTERS: Final = 10_000
PROFILE_HEADER_CHARACTERS: Final = 300
# Characters of a line of a snapshot.
SNAPSHOT_LINE_CHARACTERS: Final = 20_000
# Facts of a boot.
FACTS: Final = 400
# Characters of a fact, the command line apart.
FACT_CHARACTERS: Final = 1000
# Files that facts are read from.
FACT_FILES: Final = 4000
# Lines of a file that facts are read from.
FACT_FILE_LINES: Final = 200

# --- What workers and repositories give: refused, or not compared ---

# Characters of the compilers that a worker announces.
COMPILERS_CHARACTERS: Final = 64 * 1024
# Bytes of HEAD, commondir or `.git` of a repository; else it is not read.
GIT_FILE_BYTES: Final = 8192
# Bytes, values and names of a kernel's record of functions. A VM has 5 MB, 410 000 values (lists
# included) and 38 000 names; a distribution 30 MB. An empty list takes 25 times its text
# in memory, so that bytes alone are no limit.
KERNEL_RECORD_BYTES: Final = 40 << 20
KERNEL_RECORD_VALUES: Final = 3_000_000
KERNEL_RECORD_NAMES: Final = 400_000
# Bytes of a kernel's configuration that is compared, or of a distribution's.
KCONFIG_BYTES: Final = 4 << 20
# Directories in which job files are looked for; more is a whole disk.
JOB_DIRECTORIES: Final = 5000
