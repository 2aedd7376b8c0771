"""The files of a kit, in order. Equal facts give equal bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from swingbot.core.reproduce import readme, scripts, tables
from swingbot.core.reproduce.kit import (
    Kit,
    KitArtifact,
    KitBoot,
    KitKernel,
    KitMember,
    KitPayload,
    KitRootfs,
    KitText,
)


def members(kit: Kit) -> list[KitMember]:
    """Return all files sorted by path, followed by `SHA256SUMS`."""
    files = _once(sorted(_files(kit), key=lambda member: member.path))
    sums = "".join(f"{_sha256(member)}  {member.path}\n" for member in files)
    return [*files, _text("SHA256SUMS", sums)]


def _sha256(member: KitMember) -> str:
    content = member.content
    return (
        content.sha256
        if isinstance(content, KitArtifact)
        else hashlib.sha256(content.content).hexdigest()
    )


def _once(files: Iterable[KitMember]) -> list[KitMember]:
    """Include each file of the artifact store once; further paths become hard links."""
    first: dict[str, str] = {}
    linked = []
    for member in files:
        if isinstance(member.content, KitArtifact):
            before = first.setdefault(member.content.sha256, member.path)
            member = member if before == member.path else replace(member, same_as=before)
        linked.append(member)
    return linked


def _text(path: str, text: str | bytes, *, executable: bool = False) -> KitMember:
    content = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    return KitMember(path=path, content=KitText(content=content, executable=executable))


def _files(kit: Kit) -> Iterator[KitMember]:
    yield _text("README", readme.readme(kit))
    yield _text(f"{kit.kind}.json", kit.json)
    if kit.mail:
        yield _text("mail.txt", kit.mail)
    yield _text("reproduce.sh", scripts.reproduce(kit), executable=True)
    yield _text("build.sh", scripts.build(kit), executable=True)
    yield _text("kernels.tsv", tables.kernels(kit))
    yield _text("boots.tsv", tables.boots(kit))
    yield _text("payloads.tsv", tables.payloads(kit))
    yield _text("numbers.tsv", tables.numbers(kit.boots))
    yield _text("levels.tsv", tables.levels(kit))
    for row in kit.rows:
        yield from _kernel(row.kernel)
        for number, patch in enumerate(row.patches, 1):
            yield _text(tables.patch_path(row.kernel.name, number), patch)
        if row.series:
            series = "".join(f"{path}\n" for path in row.series)
            yield _text(f"kernels/{row.kernel.name}/series", series)
    for payload in kit.payloads:
        yield from _payload(payload)
    yield from _qemu(_each_once(kit.boots))


def _each_once(boots: Iterable[KitBoot]) -> list[KitBoot]:
    """Return the boots without duplicates: several rows may share one boot."""
    return list({boot.id: boot for boot in boots}.values())


def _qemu(boots: Iterable[KitBoot]) -> Iterator[KitMember]:
    for boot in boots:
        if boot.qemu:
            yield _text(f"boots/{boot.id}.qemu", "".join(f"{word}\n" for word in boot.qemu))


def _kernel(kernel: KitKernel) -> Iterator[KitMember]:
    if kernel.config is not None:
        yield KitMember(path=f"kernels/{kernel.name}/config", content=kernel.config)
    if kernel.image is not None:
        yield KitMember(path=f"kernels/{kernel.name}/bzImage", content=kernel.image)


def _payload(payload: KitPayload) -> Iterator[KitMember]:
    if payload.job is not None:
        yield KitMember(path=f"{payload.directory}/job.cpio", content=payload.job)
    yield from _programs(payload.programs, payload.directory)
    if payload.rootfs is not None and payload.rootfs_number == payload.number:
        yield from _rootfs(payload.rootfs, payload.rootfs_directory)


def _programs(programs: Mapping[str, bytes], directory: str) -> Iterator[KitMember]:
    for path, content in programs.items():
        yield _text(f"{directory}/{path}", content, executable=path.endswith(("run", ".sh")))


def _rootfs(rootfs: KitRootfs, directory: str) -> Iterator[KitMember]:
    rows = "".join(
        f"{path}\t{size}\t{sha256}\t{package}\n" for path, size, sha256, package in rootfs.files
    )
    yield _text(f"{directory}/files.tsv", "path\tbytes\tsha256\tpackage\n" + rows)
    if rootfs.archive is not None:
        yield KitMember(path=f"{directory}/rootfs.cpio", content=rootfs.archive)
    if rootfs.left_out:
        lines = (
            f"{omitted.path} {omitted.offset} {omitted.size} {omitted.sha256} {omitted.package}\n"
            for omitted in rootfs.left_out
        )
        yield _text(f"{directory}/left-out", "".join(lines))
