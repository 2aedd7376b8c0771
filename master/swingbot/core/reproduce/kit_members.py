"""The files of a kit, in order. Same facts, same bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from swingbot.core.reproduce import lkp_job, readme, scripts
from swingbot.core.reproduce.kit import SIDES, Kit, KitArtifact, KitMember, KitText


def members(kit: Kit) -> list[KitMember]:
    """All files by path, `SHA256SUMS` of all others last."""
    found = sorted(_members(kit), key=lambda member: member.path)
    sums = "".join(f"{_sha256(member)}  {member.path}\n" for member in found)
    return [*found, _text("SHA256SUMS", sums)]


def _sha256(member: KitMember) -> str:
    content = member.content
    return (
        content.sha256
        if isinstance(content, KitArtifact)
        else hashlib.sha256(content.content).hexdigest()
    )


def _text(path: str, text: str | bytes, *, executable: bool = False) -> KitMember:
    content = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    return KitMember(path=path, content=KitText(content=content, executable=executable))


def _members(kit: Kit) -> Iterator[KitMember]:
    yield _text("README", readme.readme(kit))
    yield _text("mail.txt", kit.mail)
    yield _text("report.json", kit.json)
    yield _text("reproduce.sh", scripts.reproduce(kit), executable=True)
    yield _text("build.sh", scripts.build(kit), executable=True)
    yield _text("numbers.tsv", numbers(kit))
    yield _text("boots.tsv", boots(kit))
    yield _text("job.yaml", lkp_job.text(kit.unit_job))
    if kit.patch is not None:
        yield _text("kernels/culprit.patch", kit.patch)
    yield from _kernels(kit)
    yield from _rootfs(kit)
    if kit.job is not None:
        yield KitMember(path="job/job.cpio", content=kit.job)
    for path, content in kit.programs.items():
        yield _text(f"job/{path}", content, executable=path.endswith(("run", ".sh")))
    for boot in kit.boots:
        if boot.qemu:
            yield _text(f"boots/{boot.id}.qemu", "".join(f"{word}\n" for word in boot.qemu))


def _kernels(kit: Kit) -> Iterator[KitMember]:
    for side in SIDES:
        kernel = kit.kernels[side]
        if kernel.config is not None:
            yield KitMember(path=f"kernels/{side}/config", content=kernel.config)
        if kernel.image is not None:
            yield KitMember(path=f"kernels/{side}/bzImage", content=kernel.image)


def _rootfs(kit: Kit) -> Iterator[KitMember]:
    if kit.rootfs is None:
        return
    rows = "".join(
        f"{path}\t{size}\t{sha256}\t{package}\n" for path, size, sha256, package in kit.rootfs.files
    )
    yield _text("rootfs/files.tsv", "path\tbytes\tsha256\tpackage\n" + rows)
    if kit.rootfs.archive is not None:
        yield KitMember(path="rootfs/rootfs.cpio", content=kit.rootfs.archive)
    if kit.rootfs.left_out:
        lines = (
            f"{gone.path} {gone.offset} {gone.size} {gone.sha256} {gone.package}\n"
            for gone in kit.rootfs.left_out
        )
        yield _text("rootfs/left-out", "".join(lines))


def numbers(kit: Kit) -> str:
    """Every value that was reported: boot, side, k, unit job, run, metric, value (17 digits: the very same double)."""
    rows = [
        f"{boot.id}\t{boot.side}\t{boot.k}\t{run.unit_job}\t{run.number}\t{metric}\t{value!r}\n"
        for boot in kit.boots
        for run in boot.runs
        for metric, value in sorted(run.values.items())
    ]
    return "".join(rows)


def boots(kit: Kit) -> str:
    """The boots in the order in which they are to be made, sides in turn: id, side, k, and the seconds that ours took."""
    ordered = sorted(kit.boots, key=lambda boot: (boot.k, SIDES.index(boot.side), boot.id))
    return "".join(f"{boot.id}\t{boot.side}\t{boot.k}\t{boot.seconds:.0f}\n" for boot in ordered)
