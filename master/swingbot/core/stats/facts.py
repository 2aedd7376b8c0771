"""How the fact sheets of two kernels' boots differ, and what that means for a comparison of them.

The list of facts (`jobs/schema/facts.yaml`) says of each whether it is the machine's, a setting, the kernel's own, or the variant itself.
A fact that only one side noted says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from swingbot.core.thresholds import MEMORY_SLACK
from swingbot_jobs.contract.facts import END, OF_SERVER, SET, fact_of, known
from swingbot_jobs.contract.settings import parameter

Facts = Mapping[str, Any]
Boots = Mapping[int, Facts]  # by k
Kind = Literal["blocks", "compared", "told", "variant"]

# the order in which they are shown
_KINDS: Final[tuple[Kind, ...]] = ("blocks", "compared", "told", "variant")
_NAMES: Final = {
    "cmdline": "the kernel command line",
    "cpu_model": "the CPU model",
    "nr_cpu": "the number of CPUs",
    "memory_kb": "the memory (kB)",
    "rootfs": "the root file system",
}
# Ours: set for each boot, such as its perturbation and its token. The boot loader's: the image.
# What a kernel parameter decides, so that a difference in it follows from the parameter. The facts
# of the kernel's own making (`compare: kernel`) need not be here: they never block.
_DECIDES: Final = {
    "transparent_hugepage": ("thp_enabled",),
    "transparent_hugepage_shmem": ("shmem_enabled",),
    "numa_balancing": ("kernel.numa_balancing",),
    "norandmaps": ("kernel.randomize_va_space",),
    "hugepages": ("hugepages",),
    "isolcpus": ("isolated_cpus",),
    "nosmt": ("smt", "nr_cpu", "threads_per_core", "node_cpus"),
    "maxcpus": ("nr_cpu", "threads_per_core", "nr_socket", "node_cpus"),
    "nr_cpus": ("nr_cpu", "threads_per_core", "nr_socket", "node_cpus"),
    "mem": ("memory_kb", "nr_node", "node_cpus"),
    "numa": ("nr_node", "node_cpus"),
    "cpufreq.default_governor": ("governor",),
    "intel_pstate": ("freq_driver", "pstate_status", "governor"),
    "amd_pstate": ("freq_driver", "pstate_status", "governor"),
    "cpuidle.governor": ("idle_governor",),
    "cpuidle.off": ("idle_driver", "idle_governor", "idle_states"),
    "nmi_watchdog": ("kernel.nmi_watchdog",),
    "schedstats": ("kernel.sched_schedstats",),
    "noautogroup": ("kernel.sched_autogroup_enabled",),
}
_OF_THE_BOOT: Final = re.compile(r"^(swingbot[.=]|BOOT_IMAGE=|initrd=)")
_SHOWN: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class FactDifference:
    """One fact that is not the same on both sides.

    `blocks`: no verdict can be given; `compared`: the job says that it is what is compared; `told`: the kernel may have set it itself, which may be the
    explanation; `variant`: it is the kernel that is compared, and has to differ. `base` and `head` hold each side's different values.
    """

    fact: str
    kind: Kind
    base: tuple[str, ...]
    head: tuple[str, ...]
    words: str

    def to_json(self) -> dict[str, Any]:
        about = fact_of(self.fact)
        values = {"base": list(self.base), "head": list(self.head)}
        return {
            "fact": self.fact,
            "kind": self.kind,
            **values,
            "words": self.words,
            "about": about.about if about else "",
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class BootSettings:
    """What one side of a comparison was asked to set: UnitJob's fields of these names."""

    cmdline: str = ""
    sysctl: Mapping[str, str] = field(default_factory=dict)


def differences(
    base: Boots,
    head: Boots,
    *,
    paired: bool,
    compared: Collection[str] = (),
    arms: tuple[BootSettings, BootSettings] = (BootSettings(), BootSettings()),
) -> list[FactDifference]:
    """How the sheets of base and head differ, what blocks a verdict first.

    On a paired testbox only boots of equal k have to agree; else all boots of both sides have to. `compared`: facts that the job demands or compares.
    `arms`: what base and head were asked to set. A difference that is exactly the one between them,
    or that follows from it, is what is compared.
    """
    names = {
        name
        for boots in (base, head)
        for facts in boots.values()
        for name in facts
        if not name.endswith(END)
    }
    ours = _same_guest((*base.values(), *head.values()))
    found = [
        made
        for name in names
        for made in _difference(name, base, head, paired, _kind(name, ours, compared))
    ]
    found = [replace(d, kind="compared") if _asked(d, arms) else d for d in found]
    places = {name: place for place, name in enumerate(known())}
    return sorted(
        found, key=lambda d: (_KINDS.index(d.kind), places.get(d.fact, len(places)), d.fact)
    )


def against(found: Sequence[FactDifference]) -> str | None:
    """Why no verdict can be given, in a sentence that says what to do; None if nothing speaks against one."""
    blocking = [d for d in found if d.kind == "blocks"]
    said = _few([d.words for d in blocking])
    mine = [
        d.fact
        for d in blocking[:2]
        if (fact := fact_of(d.fact)) is not None and fact.compare == "setting"
    ]
    return (
        f"{said} (demand {mine[0]} in the job, or say compare_fact: {mine[0]} if it is what is compared)"
        if said and mine
        else said
    )


def told(found: Sequence[FactDifference]) -> str | None:
    """What may be the explanation of a change, in a sentence."""
    return _few([d.words for d in found if d.kind in ("compared", "told")])


def _asked(difference: FactDifference, arms: tuple[BootSettings, BootSettings]) -> bool:
    """Whether a difference is what the arms were asked to differ in."""
    name, words = difference.fact.removeprefix(OF_SERVER), [_words_of(arm) for arm in arms]
    if difference.kind == "variant":
        return False
    if name == "cmdline":
        rest = [
            {_without(line, own - other) for line in lines}
            for lines, own, other in (
                (difference.base, words[0], words[1]),
                (difference.head, words[1], words[0]),
            )
        ]
        return words[0] != words[1] and rest[0] == rest[1]
    sysctl = name.removeprefix(SET)
    if arms[0].sysctl.get(sysctl) != arms[1].sysctl.get(sysctl):
        return True
    decided = (_DECIDES.get(parameter(word), ()) for word in words[0] ^ words[1])
    return any(name in facts for facts in decided)


def _words_of(arm: BootSettings) -> frozenset[str]:
    return frozenset(arm.cmdline.split())


def _without(line: str, words: Collection[str]) -> str:
    return " ".join(word for word in line.split() if word not in words)


def _same_guest(boots: Sequence[Facts]) -> bool:
    """Whether all boots had one root file system of ours: nothing in it sets anything, so that a setting is as the kernel made it."""
    digests = {facts.get("rootfs") for facts in boots}
    return len(digests) == 1 and None not in digests


def _kind(name: str, ours: bool, compared: Collection[str]) -> Kind | None:
    fact = fact_of(name)
    if fact is None or fact.compare == "boot":
        return None
    if name in compared:
        return "compared"
    return {
        "machine": "blocks",
        "setting": "told" if ours else "blocks",
        "kernel": "told",
        "variant": "variant",
    }[fact.compare]


def _difference(
    name: str, base: Boots, head: Boots, paired: bool, kind: Kind | None
) -> Iterator[FactDifference]:
    sides = [
        {
            k: _plain(name, facts[name])
            for k, facts in sorted(boots.items())
            if facts.get(name) is not None
        }
        for boots in (base, head)
    ]
    if kind is None or not sides[0] or not sides[1]:
        return
    both = sides[0].keys() & sides[1].keys()
    if paired and both:
        sides = [
            {k: side[k] for k in both if not _equal(name, sides[0][k], sides[1][k])}
            for side in sides
        ]
        if not sides[0]:
            return
    values = [tuple(dict.fromkeys(side.values())) for side in sides]
    if all(_equal(name, value, values[0][0]) for value in (*values[0], *values[1])):
        return
    yield FactDifference(
        fact=name,
        kind=kind,
        base=values[0],
        head=values[1],
        words=_words(name, values[0], values[1]),
    )


def _words(name: str, base: Sequence[str], head: Sequence[str]) -> str:
    bare = name.removeprefix(OF_SERVER)
    named = _NAMES.get(bare, bare) + (" of the server" if bare != name else "")
    if base == head:
        return f"{named} changed during the comparison: {_listed(base)}"
    a, b = (_only(base, head), _only(head, base)) if bare == "cmdline" else (base, head)
    return f"{named} differs: {_listed(a)} in base, {_listed(b)} in head"


def _plain(name: str, value: Any) -> str:
    text = str(value).strip()
    return (
        " ".join(word for word in text.split() if not _OF_THE_BOOT.match(word))
        if name.removeprefix(OF_SERVER) == "cmdline"
        else text
    )


def _equal(name: str, a: str, b: str) -> bool:
    if name.removeprefix(OF_SERVER) == "memory_kb":
        try:
            return abs(float(a) - float(b)) <= MEMORY_SLACK * max(abs(float(a)), abs(float(b)))
        except ValueError:
            return a == b
    return a == b


def _only(own: Sequence[str], other: Sequence[str]) -> list[str]:
    """The words of a command line that the other side's has not."""
    theirs = {word for line in other for word in line.split()}
    return [
        " ".join(word for word in line.split() if word not in theirs) or "nothing more"
        for line in own
    ]


def _listed(values: Sequence[str]) -> str:
    return " and ".join(
        (v if len(v) <= _SHOWN else v[: _SHOWN - 3] + "...") or "nothing" for v in values[:3]
    )


def _few(said: Sequence[str]) -> str | None:
    if not said:
        return None
    more = len(said) - 2
    return "; ".join(said[:2]) + (f"; and {more} more fact{'s' * (more > 1)}" if more > 0 else "")
