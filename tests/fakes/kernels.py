"""Comparisons of kernel records for tests that have no service."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import IO, Any, BinaryIO, cast

from swingbot.adapters import kernel_child
from swingbot.adapters.kernel_reader import ChildKernelRecords
from swingbot.web.ports import OpenArtifact, StoredFiles


class KernelRecordsHere(ChildKernelRecords):
    """Does what the child does in this process: thousands of simulated gates ask it."""

    def _read(self, request: Mapping[str, Any], file: IO[bytes]) -> dict[str, Any]:
        return kernel_child.answer(dict(request), file)


def kept_by(open_artifact: Callable[[str], BinaryIO]) -> StoredFiles:
    """The files that pages read, as the service does."""
    return StoredFiles(
        open=cast(OpenArtifact, open_artifact), kernels=ChildKernelRecords(open_artifact)
    )
