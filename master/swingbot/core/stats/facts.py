"""Which facts of the boots must be equal for two kernels to be comparable, and which a kernel may change by itself.

Facts are what the guest and the driver noted of a boot: names and short values. A fact that only one side noted says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

Facts = Mapping[str, Any]
Boots = Mapping[int, Facts]  # by k

# Two boots that differ here measured two machines, whatever kernel ran.
MUST_BE_EQUAL: Final = ("cmdline", "microcode", "cpu_model", "nr_cpu", "memory_kb", "accel", "qemu_cpu", "qemu_version", "host_kernel", "rootfs")
# version.perf, sha256.usr/bin/netperf: other binaries count other things.
MUST_BE_EQUAL_BEGINS: Final = ("version.", "sha256.")
# A commit may set these, and then they are the explanation.
TOLD: Final = ("thp_enabled", "thp_defrag", "clocksource", "governor", "mitigations", "perf_events")
_NAMES: Final = {
    "cmdline": "the kernel command line",
    "cpu_model": "the CPU model",
    "nr_cpu": "the number of CPUs",
    "memory_kb": "the memory (kB)",
    "rootfs": "the root file system",
}
# Ours: set for each boot, such as its perturbation. The boot loader's: the name of the image.
_OF_THE_BOOT: Final = re.compile(r"^(swingbot\.|BOOT_IMAGE=|initrd=)")
MEMORY_SLACK: Final = 0.02  # a larger kernel leaves less memory: hundreds of kB, not a fiftieth
_SHOWN: Final = 60


def differing(base: Boots, head: Boots, *, paired: bool) -> tuple[str | None, str | None]:
    """(what makes base and head incomparable, what differs and may be the kernel's own doing), each a sentence or None.

    On a paired testbox only boots of equal k have to agree; else all boots of both sides have to.
    """
    names = sorted({name for boots in (base, head) for facts in boots.values() for name in facts})
    must = [said for name in names if name in MUST_BE_EQUAL or name.startswith(MUST_BE_EQUAL_BEGINS) for said in _differs(name, base, head, paired)]
    told = [said for name in names if name in TOLD for said in _differs(name, base, head, paired)]
    return _few(must), _few(told)


def _differs(name: str, base: Boots, head: Boots, paired: bool) -> Iterator[str]:
    sides = [{k: _plain(name, facts[name]) for k, facts in sorted(boots.items()) if facts.get(name) is not None} for boots in (base, head)]
    if not sides[0] or not sides[1]:
        return
    both = sides[0].keys() & sides[1].keys()
    if paired and both:
        sides = [{k: side[k] for k in both if not _equal(name, sides[0][k], sides[1][k])} for side in sides]
        if not sides[0]:
            return
    values = [list(dict.fromkeys(side.values())) for side in sides]
    if all(_equal(name, a, b) for a in (*values[0], *values[1]) for b in (values[0][0],)):
        return
    told = _NAMES.get(name, name)
    if values[0] == values[1]:
        yield f"{told} changed during the comparison: {_listed(values[0])}"
    else:
        a, b = (_only(values[0], values[1]), _only(values[1], values[0])) if name == "cmdline" else (values[0], values[1])
        yield f"{told} differs: {_listed(a)} in base, {_listed(b)} in head"


def _plain(name: str, value: Any) -> str:
    text = str(value).strip()
    return " ".join(word for word in text.split() if not _OF_THE_BOOT.match(word)) if name == "cmdline" else text


def _equal(name: str, a: str, b: str) -> bool:
    if name == "memory_kb":
        try:
            return abs(float(a) - float(b)) <= MEMORY_SLACK * max(abs(float(a)), abs(float(b)))
        except ValueError:
            return a == b
    return a == b


def _only(own: Sequence[str], other: Sequence[str]) -> list[str]:
    """The words of a command line that the other side's has not."""
    theirs = {word for line in other for word in line.split()}
    return [" ".join(word for word in line.split() if word not in theirs) or "nothing more" for line in own]


def _listed(values: Sequence[str]) -> str:
    return " and ".join((v if len(v) <= _SHOWN else v[: _SHOWN - 3] + "...") or "nothing" for v in values[:3])


def _few(said: Sequence[str]) -> str | None:
    if not said:
        return None
    more = len(said) - 2
    return "; ".join(said[:2]) + (f"; and {more} more fact{'s' * (more > 1)}" if more > 0 else "")
