"""Settings of a job for its boot: words of the kernel command line, and sysctls. Pure.

Form and permission are kept apart. The form (`parse_words`, `check_form`) holds for everything that
is ever stored. The permission (`check_words`, `check_sysctls`) limits what a request may set today;
it may become stricter, and older results stay readable.

The kernel treats '-' and '_' in the name of a parameter alike (kernel/params.c, `parameqn`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from swingbot_jobs import limits
from swingbot_jobs.contract.trust import Trust

# Neither a shell nor a boot loader gives any of these characters a meaning within quotes.
# An upper-case first letter is refused: the kernel has no such parameter, and puts a word that it
# does not know into the environment of init.
_WORD: Final = re.compile(r"[a-z][A-Za-z0-9_.,:=+@%^~*/!-]*")
_SYSCTL: Final = re.compile(r"[a-z0-9_-]+(?:[./][a-z0-9_-]+)+")
_VALUE: Final = re.compile(r"[!-~](?:[ -~]*[!-~])?")

# Parameters (names, and prefixes of names) that the lab sets itself, and why it needs them.
_OWNED: Final = {
    "the lab reads the kernel's console to detect the end of a boot": (
        "console keep_bootcon netconsole loglevel quiet earlycon earlyprintk",
        "netconsole. printk. 8250. serial8250. kgdb",
    ),
    "the testbox brings the root file system, its first program and the address": (
        "root ro rw init rdinit initrd noinitrd initrdmem bootconfig resume ip nfsroot nfsaddrs"
        " single emergency rescue",
        "root ramdisk_ systemd. rd. udev. sb_",
    ),
    "the lab decides when a machine panics and reboots, and takes no dump": (
        "oops reboot crashkernel elfcorehdr",
        "",
    ),
    "the job and its results need what the kernel initialises": (
        "initcall_blacklist",
        "virtio module_blacklist modprobe.",
    ),
    "words with this prefix are reserved for the lab": ("swingbot", "swingbot."),
}
# Parameters that reach beyond the kernel under test: firmware, buses, memory, devices, and
# protections of the machine from the kernel's code.
_OF_THE_MACHINE: Final = (
    "acpi efi noefi pci iommu iomem memmap lockdown lsm security selinux mce msr"
    " reserve reservetop",
    "acpi acpi_ acpi. pci_ pcie efi_ efi. efivar intel_iommu amd_iommu iommu. module. thermal. msr."
    " libata ata_ nvme usb ima_ evm apparmor mce. mem_encrypt ioremap",
)

# Parameters that x86 looks for in the text of the command line (`cmdline_find_option`), some of
# them in the boot stub alone. The kernel hands them to init as words that it does not know.
_SCANNED: Final = (
    "acpi_rsdp clearcpuid debug dis_ucode_ldr edd forcepae mem_encrypt no387 no5lvl nofxsr nokaslr"
    " nopti nospec_store_bypass_disable nospectre_v2 noxsave noxsaveopt noxsaves pti"
    " spec_store_bypass_disable spectre_v2 spectre_v2_user split_lock_detect tsx vga video",
    "",
)
# Refused sysctls (paths below /proc/sys, and prefixes of paths), and why.
_REFUSED_SYSCTLS: Final = {
    "the lab decides which programs a kernel starts": (
        "kernel/core_pattern kernel/core_pipe_limit kernel/modprobe kernel/hotplug"
        " kernel/poweroff_cmd kernel/cad_pid kernel/ctrl-alt-del kernel/real-root-dev",
        "kernel/usermodehelper/ fs/binfmt_misc/ kernel/core_",
    ),
    "the lab decides how a machine is rebooted and named": (
        "kernel/sysrq kernel/hostname kernel/domainname",
        "kernel/kexec_load kernel/acpi_",
    ),
    "the lab reads the kernel's console": ("kernel/print-fatal-signals", "kernel/printk"),
    "it can't be set back before the next boot": (
        "kernel/modules_disabled kernel/unprivileged_bpf_disabled kernel/ftrace_dump_on_oops",
        "kernel/keys/root",
    ),
    "it is an action and has no value to read back": (
        "vm/drop_caches vm/compact_memory vm/stat_refresh net/ipv4/route/flush"
        " net/ipv6/route/flush",
        "",
    ),
}


class SettingError(ValueError):
    """An invalid setting; the message says which one, why, and what to write instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a word or a sysctl is refused."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what} can't be set by a job: {self.why}; remove it"


# --- the kernel command line --------------------------------------------------------------------


def parse_words(cmdline: str) -> tuple[str, ...]:
    """The words of a kernel command line, if each of them has the form of one.

    Raises SettingError for quotes, control characters, characters that a boot loader interprets,
    a word twice, and for more words or characters than `limits` allows.
    """
    words = tuple(cmdline.split(" ")) if cmdline else ()
    if len(cmdline) > limits.CMDLINE_CHARACTERS or len(words) > limits.CMDLINE_WORDS:
        raise SettingError(
            f"the kernel command line has {len(words)} words and {len(cmdline)} characters,"
            f" more than {limits.CMDLINE_WORDS} or {limits.CMDLINE_CHARACTERS}"
        )
    for word in words:
        if not _WORD.fullmatch(word):
            raise SettingError(
                f"{word[:60]!r} is not a valid word of the kernel command line: words begin with a"
                " lower-case letter, hold letters, digits and _.,:=+@%^~*/!- and have one blank"
                " between them"
            )
    if (twice := next((word for word in words if words.count(word) > 1), None)) is not None:
        raise SettingError(f"{twice[:60]!r} appears twice on the kernel command line; remove one")
    return words


def handed_on(cmdline: str) -> tuple[str, ...]:
    """The words that the kernel hands to init only where it does not know them.

    Others cannot be distinguished from unknown ones: those that the kernel looks for in the text,
    and those of a module, whose name has a dot.
    """
    names = {word: parameter(word) for word in parse_words(cmdline)}
    return tuple(
        word for word, name in names.items() if not _listed(name, _SCANNED) and "." not in name
    )


def parameter(word: str) -> str:
    """The name of the parameter that a word sets, as the kernel compares it."""
    return word.partition("=")[0].replace("-", "_")


def check_words(cmdline: str, trust: Trust = "trusted") -> None:
    """Raise SettingError for the first word that a job may not set.

    `trust` is that of the kernel under test. Words that reach the machine below it are accepted for
    a trusted kernel only; those that the lab needs itself are always refused.
    """
    for word in parse_words(cmdline):
        if (refusal := refused_word(word, trust)) is not None:
            raise SettingError(str(refusal))


def refused_word(word: str, trust: Trust) -> Refusal | None:
    """Return why `word` may not be on the command line of a kernel of this trust.

    None if it may.
    """
    name = parameter(word)
    what = f"the kernel parameter {name[:60]}"
    if name == "sysctl" or name.startswith(("sysctl.", "sysctl/")):
        return Refusal(what=what, why="write it under the key sysctl, where it is read back")
    if "panic" in name:
        return Refusal(what=what, why="the lab decides when a kernel panics")
    for why, listed in _OWNED.items():
        if _listed(name, listed):
            return Refusal(what=what, why=why)
    if trust == "untrusted" and _listed(name, _OF_THE_MACHINE):
        why = "it reaches the machine below the kernel, and the kernel to boot is not trusted"
        return Refusal(what=what, why=why)
    return None


def joined(*cmdlines: str) -> str:
    """Join command lines with one blank between them."""
    return " ".join(filter(None, cmdlines))


def check_length(cmdline: str) -> None:
    """Raise SettingError if the kernel would truncate this command line."""
    if len(cmdline) >= limits.COMMAND_LINE_BYTES:
        raise SettingError(
            f"the whole kernel command line has {len(cmdline)} characters, and the kernel reads"
            f" {limits.COMMAND_LINE_BYTES - 1}; remove words from the job's"
        )


# --- sysctls ------------------------------------------------------------------------------------


def sysctl_path(name: str) -> str:
    """The path below /proc/sys of a sysctl as sysctl(8) names it.

    The first separator is the one that separates: `net.ipv4.ip_forward`, or,
    where a part has a dot in it, `net/ipv4/conf/eth0.1/rp_filter`.
    Raises SettingError for an invalid name.
    """
    if not _SYSCTL.fullmatch(name) or len(name) > limits.SYSCTL_CHARACTERS:
        raise SettingError(
            f"{name[:60]!r} is not a valid sysctl name: write it as sysctl(8) prints it,"
            " such as vm.swappiness"
        )
    first = next(char for char in name if char in "./")
    return name.translate(str.maketrans("./", "/.")) if first == "." else name


def sysctl_name(name: str) -> str:
    """Return the canonical name of a sysctl: with dots, unless a part contains one.

    Raises SettingError.
    """
    path = sysctl_path(name)
    return path if "." in path else path.replace("/", ".")


def check_form(sysctls: Mapping[str, str]) -> None:
    """Raise SettingError unless all names are canonical and each value is one line of text."""
    if len(sysctls) > limits.SYSCTLS:
        raise SettingError(f"the job sets {len(sysctls)} sysctls, more than {limits.SYSCTLS}")
    for name, value in sysctls.items():
        if (usual := sysctl_name(name)) != name:
            raise SettingError(f"the sysctl {name[:60]} is written {usual}")
        if len(value) > limits.SYSCTL_CHARACTERS or not _VALUE.fullmatch(value):
            raise SettingError(
                f"the sysctl {name} can't be {value[:60]!r}: a value is one line of"
                f" 1 to {limits.SYSCTL_CHARACTERS} printable ASCII characters"
            )


def check_sysctls(sysctls: Mapping[str, str], trust: Trust = "trusted") -> None:
    """Raise SettingError for the first sysctl that a job may not set for a kernel of this trust."""
    check_form(sysctls)
    for name in sysctls:
        if (refusal := refused_sysctl(name, trust)) is not None:
            raise SettingError(str(refusal))


def refused_sysctl(name: str, trust: Trust) -> Refusal | None:
    """Return why a job may not set the sysctl `name`; None if it may."""
    path, what = sysctl_path(name), f"the sysctl {name[:60]}"
    if "panic" in path:
        return Refusal(what=what, why="the lab decides when a kernel panics")
    for why, listed in _REFUSED_SYSCTLS.items():
        if _listed(path, listed):
            return Refusal(what=what, why=why)
    if trust == "untrusted" and path.startswith("dev/"):
        why = "it reaches a device, and the kernel to boot is not trusted"
        return Refusal(what=what, why=why)
    return None


def _listed(name: str, listed: tuple[str, str]) -> bool:
    """Return whether `name` is in the first list or starts with an entry of the second."""
    names, beginnings = (words.split() for words in listed)
    return name in names or name.startswith(tuple(beginnings))


# --- checks after a boot ------------------------------------------------------------------------


def unlike_cmdline(cmdline: str, booted: object, unknown: object) -> str | None:
    """Return why a boot did not have the job's words, in a sentence; None if it had them.

    `booted` is the command line that the kernel reports, `unknown` the words that it
    passed to init because it does not know the parameter or its value; each may be absent.
    """
    if not cmdline:
        return None
    words = parse_words(cmdline)
    present = str(booted or "").split()
    if missing := [word for word in words if word not in present]:
        return f"not as set: the kernel command line of this boot lacks {_few(missing)}"
    strange = str(unknown or "").split()
    if refused := [word for word in handed_on(cmdline) if word in strange]:
        return f"not as set: the kernel does not know the parameter or its value: {_few(refused)}"
    return None


def unlike_sysctls(sysctls: Mapping[str, str], readings: Sequence[Mapping[str, str]]) -> str | None:
    """Return why the sysctls were not as set, in a sentence; None if they were.

    Each of `readings` has the values in /proc/sys at one time, by path below it.
    """
    unlike = [words for name, value in sysctls.items() if (words := _unlike(name, value, readings))]
    return f"not as set: {'; '.join(unlike)}" if unlike else None


def _unlike(name: str, value: str, readings: Sequence[Mapping[str, str]]) -> str | None:
    for reading in readings:
        current = reading.get(sysctl_path(name))
        if current is None:
            return f"the kernel has no sysctl {name} that can be read"
        if current.split() != value.split():
            return f"{name} is {current[:60]}, not {value[:60]}: the kernel did not take the value"
    return None


def _few(words: list[str]) -> str:
    more = f" and {len(words) - 3} more" if len(words) > 3 else ""
    return ", ".join(words[:3]) + more
