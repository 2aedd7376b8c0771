"""Compressed files with random access: zstd frames of at most 1 MiB of content each, and a table of
their offsets.

The format is zstd's own "seekable format", version 0.1.0 (zstd's repository,
contrib/seekable_format): `zstd -d` reads such a file like any other. Each frame has a checksum, so
that readers detect damaged data.
"""

from __future__ import annotations

import bisect
import io
import itertools
import struct
from typing import TYPE_CHECKING, BinaryIO, Final

import zstandard

from swingbot.adapters import limits, progress
from swingbot.core.model.artifact import Damaged

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

FRAME_BYTES: Final = 1 << 20
# 3 is zstd's default: console logs shrink to a tenth, at 80 to 200 MB/s on one core; 9 takes three
# times as long and saves another 5 %.
LEVEL: Final = 3
_SKIPPABLE, _SEEKABLE = 0x184D2A5E, 0x8F92EAB1
_ENTRY, _FOOTER, _HEADER = struct.Struct("<II"), struct.Struct("<IBI"), struct.Struct("<II")


class ZstdWriter:
    """Compresses the data written into `out`; `finish` writes the table.

    Holds one frame in memory.
    """

    def __init__(self, out: BinaryIO) -> None:
        self._out, self._pending, self._table = out, bytearray(), bytearray()
        self._compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)

    def write(self, chunk: bytes) -> None:
        self._pending += chunk
        while len(self._pending) >= FRAME_BYTES:
            self._frame(bytes(self._pending[:FRAME_BYTES]))
            del self._pending[:FRAME_BYTES]

    def finish(self) -> None:
        if self._pending or not self._table:
            self._frame(bytes(self._pending))
            self._pending.clear()
        table = bytes(self._table) + _FOOTER.pack(len(self._table) // _ENTRY.size, 0, _SEEKABLE)
        self._out.write(_HEADER.pack(_SKIPPABLE, len(table)) + table)

    def _frame(self, content: bytes) -> None:
        compressed = self._compressor.compress(content)
        progress.made()
        self._out.write(compressed)
        self._table += _ENTRY.pack(len(compressed), len(content))


class ZstdReader(io.RawIOBase):
    """The content of a file written by ZstdWriter: read-only, seekable, one frame in memory.
    Closing it also closes `file`.

    Raises Damaged, on creation or while reading, if the data was modified.
    """

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file
        sizes = _table(file)
        self._places = [0, *itertools.accumulate(compressed for compressed, _ in sizes)]
        self._starts = [0, *itertools.accumulate(size for _, size in sizes)]
        self._position, self._held, self._frame = 0, -1, b""

    @property
    def size(self) -> int:
        """Size of the content in bytes."""
        return self._starts[-1]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = max(
            0,
            {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}[whence] + offset,
        )
        return self._position

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        if self._position >= self.size:
            return 0
        number = bisect.bisect_right(self._starts, self._position) - 1
        at = self._position - self._starts[number]
        view = memoryview(buffer).cast("B")
        part = self._content(number)[at : at + len(view)]
        view[: len(part)] = part
        self._position += len(part)
        return len(part)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()

    def _content(self, number: int) -> bytes:
        progress.made()
        if number != self._held:
            size = self._starts[number + 1] - self._starts[number]
            self._file.seek(self._places[number])
            compressed = self._file.read(self._places[number + 1] - self._places[number])
            try:
                content = zstandard.ZstdDecompressor().decompress(
                    compressed, max_output_size=size, read_across_frames=False
                )
            except zstandard.ZstdError as error:
                raise Damaged(f"{_name(self._file)} is damaged: {error}") from error
            if len(content) != size:
                raise Damaged(
                    f"{_name(self._file)} is damaged: a frame of {size} bytes has {len(content)}"
                )
            self._frame, self._held = content, number
        return self._frame


def _table(file: BinaryIO) -> list[tuple[int, int]]:
    """Return (compressed size, size) of each frame. Raises Damaged."""
    end = file.seek(0, io.SEEK_END)
    if end < _HEADER.size + _FOOTER.size:
        raise Damaged(f"{_name(file)} is truncated")
    file.seek(end - _FOOTER.size)
    frames, descriptor, magic = _FOOTER.unpack(file.read(_FOOTER.size))
    begin = end - _FOOTER.size - frames * _ENTRY.size
    if (
        magic != _SEEKABLE
        or descriptor != 0
        or not 0 < frames <= limits.ARTIFACT_FRAMES
        or begin < _HEADER.size
    ):
        raise Damaged(
            f"{_name(file)} has no table of frames at its end: it was truncated or modified"
        )
    file.seek(begin)
    sizes = list(_ENTRY.iter_unpack(file.read(frames * _ENTRY.size)))
    if sum(compressed for compressed, _ in sizes) != begin - _HEADER.size or any(
        size > FRAME_BYTES for _, size in sizes
    ):
        raise Damaged(
            f"{_name(file)} has a table of frames that does not match its length: it was "
            "truncated or modified"
        )
    return sizes


def _name(file: BinaryIO) -> str:
    return str(getattr(file, "name", "a stored file"))
