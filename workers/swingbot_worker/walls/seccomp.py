"""The system call filter of builds for x86-64, as classic BPF over struct seccomp_data. Pure.

It allows everything except system calls that bypass the other walls (namespaces and mounts, other
processes' memory, sockets out of the sandbox, memory that no limit counts) and parts of the kernel
with a history of vulnerabilities. The numbers are those of arch/x86/entry/syscalls/syscall_64.tbl;
the format is documented in seccomp_filter.rst.
"""

from __future__ import annotations

import errno
import platform
import struct
from typing import Final

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16  # in struct seccomp_data
_X86_64: Final = 0xC000003E  # AUDIT_ARCH_X86_64
_X32: Final = 0x40000000  # set in the numbers of x32 calls
_ALLOW: Final = 0x7FFF0000
_ERRNO: Final = 0x00050000
# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_NAMESPACES: Final = (
    0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
)
_AF_UNIX: Final = 1
_CLONE, _SOCKET = 56, 41

_REFUSED: Final = {
    "unshare": 272,
    "setns": 308,
    "mount": 165,
    "umount2": 166,
    "pivot_root": 155,
    "chroot": 161,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "mount_setattr": 442,
    "ptrace": 101,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "kcmp": 312,
    "process_madvise": 440,
    "bpf": 321,
    "perf_event_open": 298,
    "userfaultfd": 323,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "kexec_load": 246,
    "kexec_file_load": 320,
    "init_module": 175,
    "finit_module": 313,
    "delete_module": 176,
    "quotactl": 179,
    "quotactl_fd": 443,
    "swapon": 167,
    "swapoff": 168,
    "reboot": 169,
    "acct": 163,
    "syslog": 103,
    "fanotify_init": 300,
    "open_by_handle_at": 304,
    "shmget": 29,
    "mlock": 149,
    "mlockall": 151,
    "mlock2": 325,
}
# Callers have a fallback for these.
_ABSENT: Final = {
    "clone3": 435,
    "memfd_create": 319,
    "memfd_secret": 447,
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
}
# Allocates disk space without writing: gigabytes would be used before the guard can react. Tools
# write zeros instead.
_UNSUPPORTED: Final = {"fallocate": 285}


def program() -> bytes:
    """Return the filter in the format of bwrap's --seccomp."""
    lines = [
        _line(_LOAD, _ARCHITECTURE_AT),
        _line(_JUMP_EQUAL, _X86_64, 1, 0),
        _refuse(errno.ENOSYS),
        _line(_LOAD, _NUMBER_AT),
        _line(_JUMP_AT_LEAST, _X32, 0, 1),
        _refuse(errno.ENOSYS),
    ]
    for numbers, error in (
        (_REFUSED, errno.EPERM),
        (_ABSENT, errno.ENOSYS),
        (_UNSUPPORTED, errno.EOPNOTSUPP),
    ):
        for number in numbers.values():
            lines += [_line(_JUMP_EQUAL, number, 0, 1), _refuse(error)]
    # For both calls, the low half of the first argument is its whole value.
    lines += [
        _line(_JUMP_EQUAL, _CLONE, 0, 4),
        _line(_LOAD, _FIRST_ARGUMENT_AT),
        _line(_JUMP_BITS, _NAMESPACES, 0, 1),
        _refuse(errno.EPERM),
        _allow(),
    ]
    lines += [
        _line(_JUMP_EQUAL, _SOCKET, 0, 3),
        _line(_LOAD, _FIRST_ARGUMENT_AT),
        _line(_JUMP_EQUAL, _AF_UNIX, 1, 0),
        _refuse(errno.EAFNOSUPPORT),
        _allow(),
    ]
    return b"".join(lines)


def available() -> bool:
    """Return whether the filter supports this host's processor. `probe` tests the host's kernel."""
    return platform.machine() == "x86_64"


def _line(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    """Return one struct sock_filter; jumps are relative to the next instruction."""
    return struct.pack("<HBBI", code, then, otherwise, value)


def _refuse(error: int) -> bytes:
    return _line(_RETURN, _ERRNO | error)


def _allow() -> bytes:
    return _line(_RETURN, _ALLOW)
