"""One line about the machine that was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from swingbot.core.text.plain import cut


def machine_line(model: str, facts: Mapping[str, Any]) -> str:
    """Return model, sockets x cores x threads, nodes, memory, microcode, governor and turbo of a
    boot's facts, as far as they are known. The CPU is named where the model does not name it.
    """
    return ", ".join(_parts(model, facts))


def _parts(model: str, facts: Mapping[str, Any]) -> Iterator[str]:
    named = [cut(model, 80)] if model else []
    cpu = cut(" ".join(str(facts.get("cpu_model") or "").split()), 60)
    if cpu and cpu.casefold() not in model.casefold():
        named.append(f"({cpu})" if named else cpu)
    if named:
        yield " ".join(named)
    cpus, sockets, threads = (
        _whole(facts, name) for name in ("nr_cpu", "nr_socket", "threads_per_core")
    )
    if cpus and sockets and threads and cpus % (sockets * threads) == 0:
        yield f"{sockets} x {cpus // (sockets * threads)} x {threads} CPUs"
    elif cpus:
        yield f"{cpus} CPU{'s' if cpus > 1 else ''}"
    if nodes := _whole(facts, "nr_node"):
        yield f"{nodes} node{'s' if nodes > 1 else ''}"
    if memory := _whole(facts, "memory_kb"):
        yield f"{memory / (1 << 20):.3g} GiB"
    for name in ("microcode", "governor", "turbo"):
        if facts.get(name) not in (None, ""):
            yield f"{name} {cut(str(facts[name]), 40)}"


def _whole(facts: Mapping[str, Any], name: str) -> int:
    value = facts.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
