"""The kernel of a boot: its image, the image's architecture and, if embedded, its configuration.

Formats: Documentation/x86/boot.rst ("HdrS" at 0x202, setup_sects at 0x1f1, payload_offset and
payload_length at 0x248), Documentation/arm64/booting.rst ("ARM\\x64" at 56), kernel/configs.c (a
gzip stream between IKCFG_ST and IKCFG_ED).
"""

from __future__ import annotations

import lzma
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from swingbot_jobs.contract.kconfig import load_fragments, missing, shortfall
from swingbot_worker import InfraError, OrderError, limits
from swingbot_worker.digest import sha256
from swingbot_worker.order import BootKernel
from swingbot_worker.site import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One image on this host, and the key of its build.

    `kconfig` is the directory of the configurations, whose fragments may have what it lacks.
    """

    image: Path
    build_key: str
    cache: Path
    kconfig: Path

    def config(self) -> str | None:
        """Return the configuration from the cache, next to the image or inside it, or None."""
        cached = (
            sorted((self.cache / "kernels").glob(f"{self.build_key}*/config"))
            if self.build_key.strip("0")
            else []
        )
        for path in (*cached, self.image.with_name("config"), self.image.with_suffix(".config")):
            if path.is_file():
                return path.read_text(errors="replace")
        return embedded(self.image.read_bytes())

    def lacks(self, needed: Sequence[str]) -> list[str]:
        """Return those of the `needed` options that are not built in (=y); none if unknown."""
        config = self.config()
        return missing(needed, config) if config is not None else []

    def refuse_lacking(self, needed: Sequence[str], who: str) -> None:
        """Raise OrderError if options that `who` needs are not built in, with what to add to the
        configuration.
        """
        if lacking := self.lacks(needed):
            said = shortfall(lacking, who, load_fragments(self.kconfig))
            raise OrderError(f"The kernel {said}.")


def find(ordered: BootKernel, out: Path, site: Site) -> Kernel:
    """Find the image by its path, or by its sha256 in `out` or in the cache.

    Raises InfraError if it is missing or does not match the order.
    """
    return Kernel(
        image=_image(ordered, out, site.cache),
        build_key=ordered.build_key,
        cache=site.cache,
        kconfig=site.kconfig,
    )


def _image(ordered: BootKernel, out: Path, cache: Path) -> Path:
    path, wanted = ordered.image, ordered.image_sha256
    if path is not None:
        if not path.is_file():
            raise InfraError(
                f"The kernel image {path} does not exist; build it first, or give another path."
            )
        if wanted and sha256(path) != wanted:
            raise InfraError(
                f"The kernel image {path} does not match the sha256 in the order; build it again."
            )
        return path
    for path in (out / "bzImage", cache / "images" / str(wanted)):
        if path.is_file() and sha256(path) == wanted:
            return path
    raise InfraError(
        f"The kernel image {wanted} is neither in {out} nor in {cache / 'images'}; download it, or "
        "build it again."
    )


def machine_of(image: bytes) -> str | None:
    """Return `uname -m` of the machines that can boot the image, or None if unknown."""
    if image[0x202:0x206] == b"HdrS":
        return "x86_64"
    return "aarch64" if image[56:60] == b"ARM\x64" else None


def embedded(image: bytes) -> str | None:
    """Return the configuration in an x86 bzImage with IKCONFIG, or None.

    None also means a compression that Python 3.11 cannot unpack.
    """
    if machine_of(image) != "x86_64" or len(image) < 0x260:
        return None
    sectors = image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (sectors + 1) * 512 + offset
    body = _unpacked(image[start : start + length])
    begin = body.find(b"IKCFG_ST")
    if begin < 0:
        return None
    stream = zlib.decompressobj(wbits=31)
    try:
        config = stream.decompress(body[begin + 8 :], 8 << 20)
    except zlib.error:
        return None
    return config.decode(errors="replace") if stream.eof else None


def _unpacked(payload: bytes) -> bytes:
    try:
        if payload[:2] == b"\x1f\x8b":
            return zlib.decompressobj(wbits=31).decompress(payload, limits.UNPACKED_KERNEL_BYTES)
        if payload[:6] == b"\xfd7zXZ\0":
            unpacker = lzma.LZMADecompressor(memlimit=limits.UNPACKER_BYTES)
            return unpacker.decompress(payload, limits.UNPACKED_KERNEL_BYTES)
    except (zlib.error, lzma.LZMAError):
        return b""
    return payload if payload[:4] == b"\x7fELF" else b""
