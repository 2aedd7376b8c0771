"""Records of kernels that are as large in memory as their limits allow."""

from __future__ import annotations

import gzip

from swingbot_jobs.kernel_diff import write_record
from swingbot_jobs.limits import KERNEL_RECORD_VALUES


def largest_record(name: str) -> bytes:
    """Return one that differs from those of other names, and is found damaged only at its end."""
    sizes = {"text": 1, "data": 1, "bss": 1}
    empty = write_record(compiler="gcc", flags=[], sizes=sizes, symbols={}, objects={})
    lists = "[]," * (KERNEL_RECORD_VALUES // 2 - 100)
    row = f'"objects":{{"a.o":["{name}",[1,1,1],[{lists}0],[]]}}'
    return gzip.compress(gzip.decompress(empty).decode().replace('"objects":{}', row).encode(), 1)
