"""A table as KCIDB JSON, version 5.3 (https://docs.kernelci.org/kcidb/): its checkouts, builds and
tests. `kcidb-io` accepts it (`tests/db/test_kcidb.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from swingbot.core.model import ids

VERSION: Final = {"major": 5, "minor": 3}
ORIGIN: Final = re.compile("[a-z0-9_]+")
_EXCERPT: Final = 16_384  # characters of `log_excerpt`
_NOT_OF_A_PATH: Final = re.compile(r"[^a-zA-Z0-9_-]")
# Of several verdicts about a kernel the first one here counts.
_STATUS: Final = {"worse": "FAIL", "unclear": "DONE", "invalid": "DONE", "changed": "DONE"}

Item = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitter:
    """`origin` is the name under which KCIDB knows a CI system, `url` the address of its pages."""

    origin: str
    url: str

    def id(self, *parts: object) -> str:
        """An id that no other service has."""
        return "/".join([f"{self.origin}:{urlsplit(self.url).netloc}", *map(str, parts)])

    def item(self, id_: str, **keys: Any) -> Item:
        """An object without the keys that are None."""
        known = {key: value for key, value in keys.items() if value is not None}
        return {"id": id_, "origin": self.origin} | known


def kcidb(submitter: Submitter, table: Mapping[str, Any], tree: Mapping[str, Any]) -> Item:
    """Return a table, a document of `read.table`, as KCIDB has it; `tree` is its line of a tree.

    A kernel that a reference names twice is there once. Counters are left out.
    """
    variants = {arm["variant"]["build_key"]: arm["variant"] for arm in table["arms"]}
    commits = {one["commit"]: one for one in variants.values()}
    return {
        "version": VERSION,
        "checkouts": [_checkout(submitter, one, tree) for one in commits.values()],
        "builds": [_build(submitter, one, table) for one in variants.values()],
        "tests": [*_boots(submitter, table), *_measurements(submitter, table)],
    }


def _checkout(by: Submitter, variant: Mapping[str, Any], tree: Mapping[str, Any]) -> Item:
    # A commit that was sent, or made of a patch, is in no repository that others can fetch.
    trusted = variant["origin"] == "request" and variant["trust"] == "trusted"
    public = variant["origin"] == "branch" or trusted
    return by.item(
        by.id(variant["tree"], variant["commit"]),
        tree_name=variant["tree"],
        git_commit_hash=variant["commit"] if public else None,
        git_repository_url=tree["url"] if tree["url"].startswith("https://") else None,
        git_repository_branch=tree["branch"] if variant["origin"] == "branch" else None,
        patchset_hash="" if public else None,
        comment=_text(variant["subject"]),
        valid=True,
        misc={"commit": variant["commit"], "origin": variant["origin"]},
    )


def _build(by: Submitter, variant: Mapping[str, Any], table: Mapping[str, Any]) -> Item:
    errors = "\n".join(variant["build_errors"] or [])
    return by.item(
        by.id("kernel", variant["build_key"]),
        checkout_id=by.id(variant["tree"], variant["commit"]),
        compiler=_text(variant["compiler"]),
        config_name=_text(variant["kconfig"]),
        duration=variant["build_seconds"],
        status={"built": "PASS", "failed": "FAIL"}.get(variant["build"] or ""),
        log_excerpt=_text(errors)[:_EXCERPT] or None,
        misc={"layout": variant["layout"], "page": f"{by.url}/kernel/{variant['build_key']}"},
    )


def _boots(by: Submitter, table: Mapping[str, Any]) -> Iterator[Item]:
    keys = _build_keys(table)
    for boot in {one["id"]: one for one in table["boot_list"]}.values():
        yield by.item(
            by.id("boot", boot["id"]),
            build_id=by.id("kernel", keys[boot["arm"]]),
            path="boot",
            environment=_environment(table, boot["testbox"]),
            status="PASS" if boot["outcome"] == "up" else "FAIL",
            log_excerpt=_text(boot["reason"] or "")[:_EXCERPT] or None,
            start_time=boot["booted_at"],
            duration=boot["seconds"],
            misc={"outcome": boot["outcome"], "page": f"{by.url}/boot/{boot['id']}"},
        )


def _measurements(by: Submitter, table: Mapping[str, Any]) -> Iterator[Item]:
    """A test for each kernel and benchmark metric: its level, and what its rows say of it."""
    sides: dict[tuple[int, str, str, str], tuple[Mapping[str, Any], Mapping[str, Any]]] = {}
    compared: dict[tuple[int, str, str, str], list[Mapping[str, Any]]] = {}
    for row in table["rows"]:
        if not row["counter"] and row["alias_of"] is None:
            place = row["testbox"], row["unit_job"], row["metric"]
            sides.setdefault((row["reference"], *place), (row, row["base"]))
            sides.setdefault((row["arm"], *place), (row, row["head"]))
            compared.setdefault((row["arm"], *place), []).append(row)
    keys = _build_keys(table)
    for key, (row, side) in sides.items():
        if side["mean"] is None:
            continue
        rows = compared.get(key, [])
        yield by.item(
            by.id(table["id"], *key),
            build_id=by.id("kernel", keys[key[0]]),
            path=".".join(_NOT_OF_A_PATH.sub("_", part) for part in key[3].split(".")),
            environment=_environment(table, key[1]),
            comment=f"{key[2]} on {key[1]}",
            number={"value": side["mean"]} | ({"unit": row["unit"]} if row["unit"] else {}),
            status=_status([one["verdict"] for one in rows]),
            misc={
                **{name: side[name] for name in ("boots", "runs", "stddev")},
                "better": row["better"],
                "page": f"{by.url}/{ids.read(table['id'])[0]}/{table['id']}",
                "compared": [_comparison(by, one, keys) for one in rows],
            },
        )


def _comparison(by: Submitter, row: Mapping[str, Any], keys: Mapping[int, str]) -> Item:
    return {
        "build_id": by.id("kernel", keys[row["reference"]]),
        **{name: row[name] for name in ("against", "verdict", "change_pct", "interval_pct")},
    }


def _status(verdicts: Sequence[str]) -> str:
    """`DONE`, a number without an opinion, for a kernel that is only a reference."""
    known = (status for verdict, status in _STATUS.items() if verdict in verdicts)
    return next(known, "PASS" if verdicts else "DONE")


def _build_keys(table: Mapping[str, Any]) -> dict[int, str]:
    return {arm["arm"]: arm["variant"]["build_key"] for arm in table["arms"]}


def _environment(table: Mapping[str, Any], testbox: str) -> Item:
    labels = {part["testbox"]: part["label"] for part in table["parts"]}
    return {"comment": _text(labels.get(testbox) or testbox), "misc": {"testbox": testbox}}


def _text(text: str) -> str:
    """KCIDB's text has no NUL."""
    return text.replace("\0", "")
