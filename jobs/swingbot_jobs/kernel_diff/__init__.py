"""Comparison of two kernel builds: sizes, functions, data, flags and configuration. Pure."""

from __future__ import annotations

from swingbot_jobs.kernel_diff.bloat import Bloat, bloat, bloat_text, of_classes, symbol_table
from swingbot_jobs.kernel_diff.change import (
    ComparedBuild,
    change_text,
    config_part,
    headline,
    kernel_change,
)
from swingbot_jobs.kernel_diff.code_change import (
    ChangedSymbol,
    CodeChange,
    code_change,
    source_name,
)
from swingbot_jobs.kernel_diff.config import (
    asked_rows,
    config_difference,
    config_lines,
    matters,
)
from swingbot_jobs.kernel_diff.record import (
    FILE,
    VERSION,
    BadRecord,
    KernelRecord,
    SymbolRecord,
    object_row,
    read_record,
    write_record,
)

__all__ = [
    "FILE",
    "VERSION",
    "BadRecord",
    "Bloat",
    "ChangedSymbol",
    "CodeChange",
    "ComparedBuild",
    "KernelRecord",
    "SymbolRecord",
    "asked_rows",
    "bloat",
    "bloat_text",
    "change_text",
    "code_change",
    "config_difference",
    "config_lines",
    "config_part",
    "headline",
    "kernel_change",
    "matters",
    "object_row",
    "of_classes",
    "read_record",
    "source_name",
    "symbol_table",
    "write_record",
]
