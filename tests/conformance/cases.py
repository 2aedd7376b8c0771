"""Job files for the corner cases of the language, some of them random.

LKP and swingbot must name the same unit jobs.
"""

from __future__ import annotations

import random
from functools import cache

_BY_HAND = {
    "included-base": (
        "suite: hackbench\ntestcase: hackbench\nnr_threads:\n  - 1\n  - 50%\nhackbench:\n  "
        "mode: [process, threads]\n  ipc: pipe\n"
    ),
    "included-two": (
        "nr_threads: 2\nhackbench:\n  ipc: [pipe, socket]\n---\nhackbench:\n  mode: threads\n"
        "---\nfds: 7\n"
    ),
    "order": (
        "hackbench:\n  mode: [threads, process]\n  ipc: [socket, pipe]\nnr_threads: [2, 1]\n"
        "iterations: 8\n"
    ),
    "documents": (
        "nr_threads: [1, 2]\nhackbench:\n  ipc: pipe\n---\nnr_threads: 3\n---\nhackbench:\n  "
        "mode: [process, threads]\n---\nloops: 9\n"
    ),
    "dotted": (
        "hackbench:\n  ipc: pipe\n  mode: threads\n---\nhackbench.ipc: socket\n---\n"
        "hackbench.ipc: [pipe, socket]\nhackbench.fds: 3\n"
    ),
    "dotted-base": "hackbench.ipc: pipe\nnr_threads: 4\n---\nhackbench.mode: threads\n",
    "plus": (
        "nr_threads: [1, 2]\nhackbench:\n---\nnr_threads+: [2, 3]\n---\nnr_threads+: 4\n---\n"
        "loops+: 5\n---\nhackbench.fds+: 6\n"
    ),
    "minus": (
        "mode: [process, threads]\nhackbench:\n  ipc: pipe\n---\nmode-: process\n---\n"
        "mode-:\n---\nhackbench.ipc-:\n---\nfds-:\n"
    ),
    "block": "cluster: cs-localhost\nruntime: 1s\nif role server:\n  netserver:\nif role client:\n  netperf:\n    test: [TCP_RR, UDP_RR]\nnr_threads: [1, 2]\n"
    "---\nif role client:\n  netperf:\n    test: TCP_CRR\n    ip: [ipv4, ipv6]\n",
    "null-values": "nr_threads:\nhackbench:\n  ipc: [pipe, ~]\n  mode:\n",
    "long-values": (
        "will-it-scale:\n  nr_task: 1\n  mode: process\n  test: "
        "[abcdefghijklmnopqrstuvwxyz0123456789, a/b c, 'x%y:z=1+2.3', brk1]\n"
    ),
    "braces": (
        "nr_threads: {{ nr_cpu / 3 }}\nfds: [2, 3]\nhackbench:\n  loops: {{ fds * 10 + "
        "nr_cpu % 3 }}\n"
    ),
    "braces-within": (
        "hackbench:\n  datasize: {{ nr_cpu * 2 }}\n  ipc: pipe\n---\nhackbench.loops: {{ 7 / 2 }}\n"
    ),
    "switched-off": "hackbench:\n  ipc: pipe\n  # mode: threads\n#nr_threads: 3\nloops: 2\n",
    "include": "<<: included-base.yaml\n",
    "include-over": "<<: included-base.yaml\n\nnr_threads: [3, 4]\nloops: 5\n",
    "include-documents": "<<: included-two.yaml\nloops: 6\n",
    "include-dotted": "<<: included-base.yaml\nhackbench.ipc: socket\n---\nhackbench.ipc: [pipe, socket]\n",
    "include-two": "<<: included-base.yaml\n<<: included-two.yaml\n",
    "include-flow": "<<: {file: included-two.yaml, nr_threads: 8}\n",
    "include-ignore": "<<: {file: included-two.yaml, ignore: [nr_threads]}\n",
    "setup": "cpufreq_governor: performance\nhackbench:\n  ipc: [pipe, socket]\n",
    "numbers": (
        "hackbench:\n  loops: [1, 20, 300]\n  fds: '010'\n---\nhackbench:\n  nr_threads: "
        "[12.5%, 3t]\n  iterations: [100x]\n"
    ),
}
_VALUES = {
    "nr_threads": ("1", "50%", "200%"),
    "loops": ("21", "22", "23"),
    "fds": ("31", "32", "33"),
    "iterations": ("41", "42", "43"),
    "hackbench.ipc": ("pipe", "socket"),
    "hackbench.mode": ("process", "threads"),
    "hackbench.datasize": ("51", "52", "53"),
}
_TOP = [key for key in _VALUES if "." not in key]


@cache
def cases() -> dict[str, str]:
    """Job files by name; those called `included-...` are only included. Always the same.

    Omitted are the cases in which LKP itself fails: `key-: value` where key is or becomes a plain
    value or empty (an exception), and `program.key-:` where the program has no settings (which
    removes the program).
    """
    rng = random.Random(20260722)
    return _BY_HAND | {f"drawn-{number:02}": _drawn(rng) for number in range(60)}


def _drawn(rng: random.Random) -> str:
    """A base with some keys of hackbench, and up to four documents that revise it."""
    base = (
        [f"<<: included-{rng.choice(('base', 'two'))}.yaml"]
        if rng.random() < 0.3
        else ["hackbench:", "  datasize: 50", *_inner(rng)]
    )
    documents = ["\n".join([*base, *(_line(rng, key, "") for key in _some(rng, _TOP))])]
    for _ in range(rng.randrange(5)):
        keys = _some(rng, list(_VALUES)) or ["loops"]
        documents.append("\n".join(_line(rng, key, rng.choice(("", "", "+", "-"))) for key in keys))
    return "\n---\n".join(documents) + "\n"


def _inner(rng: random.Random) -> list[str]:
    return [
        f"  {key.partition('.')[2]}: {_value(rng, key)}"
        for key in _some(rng, ["hackbench.ipc", "hackbench.mode"])
    ]


def _some(rng: random.Random, keys: list[str]) -> list[str]:
    return rng.sample(keys, rng.randrange(len(keys)))


def _line(rng: random.Random, key: str, how: str) -> str:
    return (
        f"{key}-:" if how == "-" and key in _TOP else f"{key}{how.strip('-')}: {_value(rng, key)}"
    )


def _value(rng: random.Random, key: str) -> str:
    known = _VALUES[key]
    return (
        f"[{', '.join(known[: rng.randrange(2, len(known) + 1)])}]"
        if rng.random() < 0.4
        else rng.choice(known)
    )
