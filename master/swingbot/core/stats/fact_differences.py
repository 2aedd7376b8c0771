"""Differences between the fact sheets of two kernels' boots, and their effect on a comparison.

`jobs/schema/facts.yaml` classifies each fact: it belongs to the machine, is a setting, belongs to
the kernel, or is the variant itself. A fact that only one side recorded is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from swingbot.core.thresholds import MEMORY_SLACK
from swingbot_jobs.contract.facts import END, OF_SERVER, SET, fact_of, known
from swingbot_jobs.contract.settings import parameter
from swingbot_jobs.contract.unit_job import UnitJob, cmdline_of

Facts = Mapping[str, Any]
Boots = Mapping[int, Facts]  # by k
Kind = Literal["blocks", "compared", "told", "variant"]

# In display order
_KINDS: Final[tuple[Kind, ...]] = ("blocks", "compared", "told", "variant")
_NAMES: Final = {
    "cmdline": "the kernel command line",
    "cpu_model": "the CPU model",
    "nr_cpu": "the number of CPUs",
    "memory_kb": "the memory (kB)",
    "rootfs": "the root file system",
}
# Facts that follow from a kernel parameter, so that a difference in them follows from it too. The
# kernel's own facts (`compare: kernel`) need not be listed here: they never block.
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
# Words that swingbot sets for each boot (perturbation, token) or that the boot loader adds (image)
_OF_THE_BOOT: Final = re.compile(r"^(swingbot[.=]|BOOT_IMAGE=|initrd=)")
# Facts of network devices matter to a job that talks to another machine.
_OF_NETWORK: Final = "nic_"
_DEVICE: Final = re.compile(r"(?:^|, )[A-Za-z0-9_.@-]+: ")  # the name of each device of a fact
_SHOWN: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class FactDifference:
    """A fact that differs between the sides.

    Kinds: `blocks` prevents a verdict; `compared` is what the job compares; `told` may have been
    set by the kernel itself and may explain a change; `variant` is the kernel under comparison and
    has to differ. `base` and `head` hold each side's distinct values.
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
    """Settings requested for one side of a comparison: the fields of UnitJob with these names."""

    cmdline: str = ""
    sysctl: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, jobs: Sequence[UnitJob]) -> BootSettings:
        """Return the settings of the unit jobs of one boot."""
        sysctl = {name: value for job in jobs for name, value in job.sysctl.items()}
        return cls(cmdline=cmdline_of(jobs), sysctl=sysctl)


def differences(
    base: Boots,
    head: Boots,
    *,
    paired: bool,
    compared: Collection[str] = (),
    arms: tuple[BootSettings, BootSettings] = (BootSettings(), BootSettings()),
) -> list[FactDifference]:
    """Return the differences between the sheets of base and head, blocking ones first.

    On a paired testbox, boots of equal k must agree; elsewhere all boots of both sides must.
    `compared` are the facts that the job requires or compares. `arms` are the settings requested
    for base and head. A difference that equals the requested one, or follows from it, is
    `compared`.
    """
    names = {
        name
        for boots in (base, head)
        for facts in boots.values()
        for name in facts
        if not name.endswith(END)
    }
    if not any(name.startswith(OF_SERVER) for name in names):
        names = {name for name in names if not name.startswith(_OF_NETWORK)}
    ours = _same_guest((*base.values(), *head.values()))
    differing = [
        difference
        for name in names
        for difference in _difference(name, base, head, paired, _kind(name, ours, compared))
    ]
    differing = [replace(d, kind="compared") if _asked(d, arms) else d for d in differing]
    places = {name: place for place, name in enumerate(known())}
    return sorted(
        differing, key=lambda d: (_KINDS.index(d.kind), places.get(d.fact, len(places)), d.fact)
    )


def facts_for(
    differing: Iterable[FactDifference], demand: Collection[str], compare_fact: Collection[str]
) -> tuple[FactDifference, ...]:
    """Return the differences that matter for a job: facts that it demands were checked in its
    runs, and facts that it compares may differ.
    """
    return tuple(
        replace(d, kind="compared") if d.fact in compare_fact and d.kind == "blocks" else d
        for d in differing
        if d.fact not in demand
    )


def against(differing: Sequence[FactDifference]) -> str | None:
    """Return why no verdict is possible and what to do about it; None without objection."""
    blocking = [d for d in differing if d.kind == "blocks"]
    said = _few([d.words for d in blocking])
    settings = [
        d.fact
        for d in blocking[:2]
        if (fact := fact_of(d.fact)) is not None and fact.compare == "setting"
    ]
    return (
        f"{said} (demand {settings[0]} in the job, or set compare_fact: {settings[0]}"
        " to compare it)"
        if said and settings
        else said
    )


def explanation(differing: Sequence[FactDifference]) -> str | None:
    """Return the differences that may explain a change, as a sentence."""
    return _few([d.words for d in differing if d.kind in ("compared", "told")])


def _asked(difference: FactDifference, arms: tuple[BootSettings, BootSettings]) -> bool:
    """Return True if a difference was requested by the settings of the arms."""
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
    """Return True if all boots used the same root file system built by swingbot.

    It does not change settings, so that a setting has the value that the kernel gave it.
    """
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
    """Return the value without what two boots of one machine may name or order otherwise.

    The kernel names disks and links in the order in which it finds them. A link that is down has
    the speed -1 or none; more links of a kind say nothing.
    """
    text = str(value).strip()
    bare, fact = name.removeprefix(OF_SERVER), fact_of(name)
    if fact is not None and fact.group == "devices":
        devices = _DEVICE.split(text)[1:] or [text]
        if bare.startswith(_OF_NETWORK):
            devices = list({device for device in devices if device != "-1"})
        return ", ".join(sorted(devices))
    return (
        " ".join(word for word in text.split() if not _OF_THE_BOOT.match(word))
        if bare == "cmdline"
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
    """Return the words of each command line that the other side lacks."""
    theirs = {word for line in other for word in line.split()}
    return [
        " ".join(word for word in line.split() if word not in theirs) or "nothing else"
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
