"""Counters of a server as its /proc shows them: by default 128 CPUs and 320 interrupts."""

from __future__ import annotations

import io
import random
import tarfile
from collections.abc import Callable
from typing import Final

_PER_CPU: Final = ("LOC", "RES", "CAL", "TLB", "MCP")
_NEVER: Final = ("NMI", "SPU", "PMI", "IWI", "RTR", "TRM", "THR", "DFR", "MCE", "PIN", "NPI", "PIW")
_SOFT: Final = ("TIMER", "NET_TX", "NET_RX", "BLOCK", "TASKLET", "SCHED", "RCU")
_SOFT_NEVER: Final = ("HI", "IRQ_POLL", "HRTIMER")


class ServerCounters:
    """Two interrupts of five are one CPU's, the others have never come."""

    def __init__(self, cpus: int = 128, interrupts: int = 320) -> None:
        self._random = random.Random(5)
        self.cpus = cpus
        self._hard = {str(number): [0] * cpus for number in range(interrupts)}
        for number in range(interrupts):
            if number % 5 < 2:
                self._hard[str(number)][self._random.randrange(cpus)] = 100_000 + number
        self._hard |= {name: self._many() for name in _PER_CPU}
        self._hard |= {name: [0] * cpus for name in _NEVER}
        self._soft = {name: self._many() for name in _SOFT}
        self._soft |= {name: [0] * cpus for name in _SOFT_NEVER}
        self._plain = {
            name: {
                f"{name}_{one}": self._random.randrange(10**8) * (one % 3) for one in range(size)
            }
            for name, size in (("proc-vmstat", 180), ("meminfo", 55))
        }

    def _many(self) -> list[int]:
        return [self._random.randrange(10**6) for _ in range(self.cpus)]

    def go_on(self) -> None:
        """Count for a while."""
        for counts in (*self._hard.values(), *self._soft.values()):
            for cpu, count in enumerate(counts):
                counts[cpu] += self._random.randrange(2000) if count else 0
        for values in self._plain.values():
            for name in [name for name in values if values[name] and self._random.random() < 0.4]:
                values[name] += self._random.randrange(10**5)

    def files(self) -> dict[str, str]:
        """Return the text of each file by the name of its monitor."""
        head = "".join(f"{f'CPU{cpu}':>11}" for cpu in range(self.cpus))
        rows = "".join(
            f"{name:>4}:{_cells(counts)}   {_described(name)}\n"
            for name, counts in self._hard.items()
        )
        soft = "".join(f"{name:>12}:{_cells(counts)}\n" for name, counts in self._soft.items())
        plain = {
            name: "".join(f"{key} {value}\n" for key, value in values.items())
            for name, values in self._plain.items()
        }
        return plain | {
            "interrupts": f"     {head}\n{rows} ERR:          0\n MIS:          0\n",
            "softirqs": f"             {head}\n{soft}",
        }


def _cells(counts: list[int]) -> str:
    return "".join(f"{count:>11}" for count in counts)


def _described(name: str) -> str:
    return f"IR-PCI-MSI {name}-edge      nvme0q{name}" if name.isdecimal() else f"{name} interrupts"


def results_of(
    server: ServerCounters, runs: int, shown: Callable[[str], str] = lambda text: text
) -> bytes:
    """Return the stream of a boot's runs, each with a snapshot before it and one after it."""
    out, seconds = io.BytesIO(), 0
    with tarfile.open(fileobj=out, mode="w") as stream:
        for run in range(runs):
            texts: dict[str, str] = {"rc": "0\n", "seconds": "300.05\n"}
            for _ in range(2):
                seconds += 300
                for name, text in server.files().items():
                    texts[name] = f"{texts.get(name, '')}time: {seconds}.000\n{shown(text)}"
                server.go_on()
            for name, text in texts.items():
                member = tarfile.TarInfo(f"job-{run // 3}/{run % 3}/{name}")
                member.size = len(text)
                stream.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()
