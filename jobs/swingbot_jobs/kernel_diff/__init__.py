"""What a commit did to the built kernel: sizes, functions, data, flags and configuration of two builds compared. Pure."""

from __future__ import annotations

from swingbot_jobs.kernel_diff.bloat import Bloat, bloat, bloat_text, of_classes, symbol_table
from swingbot_jobs.kernel_diff.change import Side, change_text, headline, kernel_change
from swingbot_jobs.kernel_diff.changed import Changed, CodeChange, code_change, source_name
from swingbot_jobs.kernel_diff.config import config_difference
from swingbot_jobs.kernel_diff.record import (
    FILE,
    VERSION,
    BadRecord,
    KernelRecord,
    Part,
    object_row,
    read_record,
    write_record,
)

__all__ = [
    "FILE",
    "VERSION",
    "BadRecord",
    "Bloat",
    "Changed",
    "CodeChange",
    "KernelRecord",
    "Part",
    "Side",
    "bloat",
    "bloat_text",
    "change_text",
    "code_change",
    "config_difference",
    "headline",
    "kernel_change",
    "object_row",
    "of_classes",
    "read_record",
    "source_name",
    "symbol_table",
    "write_record",
]
