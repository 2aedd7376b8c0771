"""The disk of a machine that knows nothing of us: Debian as mmdebstrap makes it,
with its own kernel, systemd, SSH and kexec-tools.

Made once and kept under the cache by what it is made from.
Next to the disk is the memory of a freshly booted machine, so that a test need not wait for
a whole boot of Debian before it begins.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from swingbot_worker import lease
from swingbot_worker.rootfs.debian import AptSource, system_sources
from swingbot_worker.site import from_environment
from tests.lab import made_root
from tests.lab.machine import CARD

SUITE = "bookworm"
PACKAGES = (
    *("linux-image-amd64", "systemd", "systemd-sysv", "udev", "dbus", "kmod", "procps", "iproute2"),
    *("openssh-server", "python3", "kexec-tools"),
)
# What no test looks at; without it the disk is 300 MB instead of 730 MB and made in half the time.
LEFT_OUT = (
    *("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*"),
    *(
        f"/lib/modules/*/kernel/drivers/{name}/*"
        for name in (
            "gpu",
            "media",
            "infiniband",
            "staging",
            "iio",
            "scsi",
            "usb",
            "mtd",
            "isdn",
            "comedi",
        )
    ),
    *(
        f"/lib/modules/*/kernel/drivers/net/{name}/*"
        for name in ("wireless", "ethernet", "usb", "can", "wan", "dsa")
    ),
    *(
        "/lib/modules/*/kernel/sound/*",
        "/lib/modules/*/kernel/drivers/hid/*",
        "/lib/modules/*/kernel/drivers/input/*",
    ),
)
DISK_MB = 2048
_NETWORK = (
    f"[Match]\nMACAddress={CARD}\n[Network]\nAddress=10.0.2.15/24\nGateway=10.0.2.2\n"
    "LinkLocalAddressing=no\nIPv6AcceptRA=no\n"
)


@dataclass(frozen=True, slots=True)
class Image:
    """Files of one made disk; `state` is the memory of a machine that has come up from `warm`."""

    folder: Path

    @property
    def disk(self) -> Path:
        return self.folder / "disk.raw"

    @property
    def kernel(self) -> Path:
        return self.folder / "vmlinuz"

    @property
    def initrd(self) -> Path:
        return self.folder / "initrd.img"

    @property
    def key(self) -> Path:
        """Private SSH key that root of the machine accepts."""
        return self.folder / "id_ed25519"

    @property
    def host_key(self) -> str:
        """The machine's public host key, type and base64."""
        return " ".join((self.folder / "host_key.pub").read_text().split()[:2])

    @property
    def warm(self) -> Path:
        return self.folder / "warm.raw"

    @property
    def state(self) -> Path:
        return self.folder / "warm.state"


def image(packages: Sequence[str] = (), cache: Path | None = None) -> Image:
    """The disk with `packages` beside the usual ones, made if it is not in the cache (2 to 4
    minutes). Raises RuntimeError with what a command said.
    """
    wanted = tuple(dict.fromkeys((*PACKAGES, *packages)))
    recipe = json.dumps([SUITE, wanted, LEFT_OUT, DISK_MB, _NETWORK, Path(__file__).read_text()])
    folder = (
        (cache or from_environment().cache)
        / "iron"
        / hashlib.sha256(recipe.encode()).hexdigest()[:16]
    )
    made = Image(folder)
    if not (folder / "ready").exists():
        with lease.cache_entry(folder, patience=1800.0):
            if not (folder / "ready").exists():
                _make(made, wanted)
    return made


def _make(made: Image, packages: Sequence[str]) -> None:
    """Raises RuntimeError also where one that was killed has left something mounted."""
    made_root.remove(made.folder)
    made.folder.mkdir(parents=True)
    _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", str(made.key))
    root = made.folder / "root"
    try:
        _bootstrap(root, packages, made.folder / "apt.list")
        _set_up(root, made.key.with_suffix(".pub").read_text())
        for name, target in (("vmlinuz", made.kernel), ("initrd.img", made.initrd)):
            shutil.copyfile(next(iter(sorted((root / "boot").glob(f"{name}-*")))), target)
        shutil.copyfile(root / "etc/ssh/ssh_host_ed25519_key.pub", made.folder / "host_key.pub")
        _run(
            "mke2fs",
            "-q",
            "-t",
            "ext4",
            "-L",
            "root",
            "-d",
            str(root),
            str(made.disk),
            f"{DISK_MB}M",
        )
    finally:
        made_root.remove(root)
    (made.folder / "ready").touch()


def _bootstrap(root: Path, packages: Sequence[str], sources: Path) -> None:
    sources.write_text(
        "".join(
            _line(source)
            for source in system_sources()
            if source.suite in (SUITE, f"{SUITE}-updates", f"{SUITE}-security")
        )
    )
    leave_out = [f"--dpkgopt=path-exclude={pattern}" for pattern in LEFT_OUT]
    argv = [
        "mmdebstrap",
        "--quiet",
        "--variant=minbase",
        "--mode=root",
        f"--include={','.join(packages)}",
        *leave_out,
        SUITE,
        str(root),
        str(sources),
    ]
    _run(
        *made_root.apart(argv if sources.read_text() else argv[:-1]), env={"SOURCE_DATE_EPOCH": "0"}
    )


def _line(source: AptSource) -> str:
    options = f"[{source.options}] " if source.options else ""
    return f"deb {options}{source.uri} {source.suite} {' '.join(source.components)}\n"


def _set_up(root: Path, public_key: str) -> None:
    """What an installer does on any Debian: address, name, disk, and the key of whoever looks after
    the machine.
    """
    files = {
        "etc/systemd/network/wired.network": _NETWORK,
        "etc/hostname": "iron\n",
        "etc/hosts": "127.0.0.1 localhost iron\n",
        "etc/fstab": "LABEL=root / ext4 defaults 0 1\n",
        "root/.ssh/authorized_keys": public_key,
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(
            mode=0o700 if name.startswith("root/") else 0o755, parents=True, exist_ok=True
        )
        path.write_text(text)
    wants = root / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True, exist_ok=True)
    (wants / "systemd-networkd.service").symlink_to("/lib/systemd/system/systemd-networkd.service")


def _run(*argv: str, env: dict[str, str] | None = None) -> None:
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    try:
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            errors="replace",
            env={**os.environ, "PATH": path, **(env or {})},
        )
    except FileNotFoundError:
        raise RuntimeError(f"{argv[0]} is not on this machine; .ci/lab installs it.") from None
    if done.returncode != 0:
        raise RuntimeError(
            f"{argv[0]} failed with status {done.returncode}: {(done.stdout + done.stderr)[-1500:]}"
        )
