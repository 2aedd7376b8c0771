"""Whether KVM really works here. A /dev/kvm that opens proves nothing: on some hosts a guest then hangs."""

from __future__ import annotations

import tempfile
from pathlib import Path

from swingbot_worker import InfraError, process
from swingbot_worker.site import Site
from swingbot_worker.testbox import qemu

PROBE_SECONDS = 20.0
# A boot sector: go to 32-bit protected mode, which real mode emulation cannot fake, and write 16 to the exit port.
_EXIT_PORT, _EXIT_VALUE = 0xF4, 16
_EXIT_STATUS = _EXIT_VALUE * 2 + 1  # isa-debug-exit


def check(name: str, site: Site) -> None:
    """Raise InfraError unless a tiny guest ran to its end under KVM since this host was booted."""
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    known = site.cache / "kvm" / boot_id
    if not known.exists():
        known.parent.mkdir(parents=True, exist_ok=True)
        known.write_text("works" if runs("kvm") else "fails")
    if known.read_text() != "works":
        raise InfraError(f"Testbox {name} wants KVM, but a probe boot under KVM failed on this host; give it `accel: tcg`, or mend KVM and remove {known}.")


def boot_sector() -> bytes:
    """512 bytes at 0x7c00 that leave the machine through the exit port from 32-bit code."""
    code = bytes.fromhex("fa 31c0 8ed8")  # cli; xor ax,ax; mov ds,ax
    gdt_at, far_at = 0x7C00 + 0x40, 0x7C00 + 0x20
    code += b"\x0f\x01\x16" + (gdt_at + 24).to_bytes(2, "little")  # lgdt [gdt pointer]
    code += bytes.fromhex("0f20c0 6683c801 0f22c0")  # mov eax,cr0; or eax,1; mov cr0,eax
    code += b"\xea" + far_at.to_bytes(2, "little") + b"\x08\x00"  # jmp 8:far_at
    code = code.ljust(0x20, b"\x90")
    code += bytes([0xB0, _EXIT_VALUE, 0xE6, _EXIT_PORT, 0xF4, 0xEB, 0xFD])  # mov al,16; out port,al; hlt; jmp $-1
    code = code.ljust(0x40, b"\x90")
    code += bytes(8) + bytes.fromhex("ffff0000009acf00 ffff00000092cf00")  # null, flat code, flat data
    code += (23).to_bytes(2, "little") + gdt_at.to_bytes(4, "little")
    return code.ljust(510, b"\0") + b"\x55\xaa"


def probe_argv(accel: str, disk: Path) -> list[str]:
    return [
        qemu.PROGRAM,
        *("-accel", accel, "-machine", "pc", "-m", "16M", "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-monitor", "none"),
        *("-device", f"isa-debug-exit,iobase={_EXIT_PORT:#x},iosize=0x4"),
        *("-drive", f"file={str(disk).replace(',', ',,')},format=raw,if=ide,readonly=off"),
    ]


def runs(accel: str) -> bool:
    """Whether a tiny guest reaches its end with `accel`, within PROBE_SECONDS."""
    with tempfile.TemporaryDirectory() as work:
        disk = Path(work, "disk")
        disk.write_bytes(boot_sector().ljust(1 << 20, b"\0"))
        return process.output(probe_argv(accel, disk), timeout=PROBE_SECONDS).rc == _EXIT_STATUS
