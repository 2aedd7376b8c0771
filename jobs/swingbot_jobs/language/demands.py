"""Demands of a job on the testbox, as written: `demand: {governor: performance}`,
or LKP's setup keys for the same facts.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from swingbot_jobs.contract import facts
from swingbot_jobs.yaml_lines import JobError, LocatedValue, suggest


@cache
def lkp_keys() -> frozenset[str]:
    """LKP's programs that set a fact, such as `cpufreq_governor: performance` or
    `transparent_hugepage: {thp_enabled: always}`.
    """
    return frozenset(fact.lkp.partition(".")[0] for fact in facts.known().values() if fact.lkp)


def written(key: str, value: LocatedValue) -> Iterator[tuple[str, str, LocatedValue]]:
    """Return (name in a path, fact, required value) for one top-level key.

    Names are LKP's option names where LKP has one. Raises JobError.
    """
    if key == "demand" and value.table is None:
        raise JobError(
            f"{value.where}: demand must be a table of facts and required values,"
            " such as 'governor: performance'"
        )
    if value.table is None:
        yield key, _fact(key, value), value
        return
    for name, wanted in value.table.items():
        fact = _fact(name if key == "demand" else f"{key}.{name}", wanted)
        lkp = facts.known()[fact].lkp if fact in facts.known() else ""
        yield lkp.rpartition(".")[2] or fact, fact, wanted


def _fact(fact_name: str, at: LocatedValue) -> str:
    aliases = {fact.lkp: fact.name for fact in facts.known().values() if fact.lkp}
    name = aliases.get(fact_name, fact_name)
    if facts.fact_of(name) is None or name.endswith("*"):
        raise JobError(
            f"{at.where}: there is no fact {fact_name[:60]!r}{suggest(name, facts.known())};"
            " `swingbot facts` lists them"
        )
    return name


def checked(fact: str, wanted: str, at: LocatedValue) -> str:
    """Return the value in its stored form. Raises JobError."""
    try:
        return facts.demand(fact, wanted)[1]
    except facts.DemandError as error:
        raise JobError(f"{at.where}: {error}") from None


def compared(value: LocatedValue | None) -> tuple[str, ...]:
    """Return the facts of `compare_fact: thp_enabled`, or of a list. Raises JobError."""
    return (
        tuple(dict.fromkeys(_fact(item.text or "", item) for item in value.items)) if value else ()
    )
