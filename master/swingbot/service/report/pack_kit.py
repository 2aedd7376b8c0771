"""Collect what is needed to reproduce a comparison or experiment elsewhere, on one of its
testboxes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from swingbot.core.limits import KIT_COMMITS
from swingbot.core.model import ids
from swingbot.core.model.lookup import NotFound
from swingbot.core.plan.blocks import block_order
from swingbot.core.reproduce import (
    Headline,
    Kit,
    KitBoot,
    KitKernel,
    KitPayload,
    ReportedChange,
)
from swingbot.core.reproduce import Row as KitRow
from swingbot.core.reproduce.lineage import Lineage, chain, lineages
from swingbot.core.reproduce.names import directory_names
from swingbot.core.reproduce.tables import patch_path
from swingbot.core.table.references import in_words
from swingbot.core.text.plain import cut
from swingbot.service import limits
from swingbot.service.report import kit_parts
from swingbot.service.report.kit_parts import Gathering, KitSources, Row
from swingbot_jobs import codec
from swingbot_jobs.contract.unit_job import UnitJob

_OPEN: Final = ("waiting", "running")
# Fields of a table's row that never change once it is judged.
_LASTING: Final = (
    "unit_job",
    "metric",
    "alias_of",
    "unit",
    "better",
    "class",
    "headline",
    "level",
    "base",
    "head",
    "change_pct",
    "interval_pct",
    "change_points",
    "interval_points",
    "verdict",
    "reason",
    "margin_pct",
    "min_effect_pct",
    "paired",
    "p",
)

# Fields of a report that never change once it is written.
_LASTING_OF_REPORT: Final = (
    "id",
    "incident",
    "kind",
    "revision",
    "message_id",
    "subject",
    "created_at",
    "size",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arm:
    """A row of the table with the name of its directory in the kit."""

    arm: int
    title: str
    name: str
    variant: Row
    trouble: str
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _ResultTable:
    """A table by its read model."""

    id: str
    kind: str  # word of its address
    model: Row  # its read model
    arms: Sequence[_Arm]
    boots: Sequence[Row]  # on all testboxes, each with its `arm`
    rows: Sequence[Row]  # each with `arm`, `reference` and its description
    first_k: int  # the k of block 0
    seed: int

    def of(self, testbox: str, *, up: bool) -> list[Row]:
        """Return the boots on a testbox: those that came up, or all."""
        return [
            boot
            for boot in self.boots
            if boot["testbox"] == testbox and (not up or boot["outcome"] == "up")
        ]


def pack_kit(
    sources: KitSources, id: str, *, kernels: bool = True, testbox: str | None = None
) -> Kit:
    """Return the kit of report, comparison or experiment `id` on `testbox`.

    None: that of a report's headline, else the first virtual one. Raises BadId, NotFound; lost
    files are listed in `missing`.
    """
    if ids.read(id)[0] == "report":
        return _pack_report(sources, id, kernels=kernels, testbox=testbox)
    table = _read(sources.table(id))
    if table.model["status"] in _OPEN:
        raise NotFound(
            f"{table.id} cannot be reproduced yet: it is {table.model['status']};"
            f" `swingbot wait {table.id}` returns when it has ended"
        )
    usual = _usual_testbox(sources, table)
    return _kit(Gathering(sources), sources, table, testbox or usual, usual, kernels=kernels)


def _pack_report(sources: KitSources, id: str, *, kernels: bool, testbox: str | None) -> Kit:
    """Return the kit of the boots of the culprit and its parent, with the mail."""
    report = sources.report(id)
    if report["incident"] is None:
        raise NotFound(f"{report['id']} is a {report['kind']}, which has no boots of its own")
    incident = sources.incident(report["incident"])
    if not incident["comparison"]:
        raise NotFound(
            f"{report['id']} cannot be reproduced yet: {report['incident']} has no boots of "
            "culprit and parent"
        )
    headline = incident["bisection_list"][0]
    model = sources.table(incident["comparison"])
    if not any(_runs(part, headline) for part in model["parts"]):
        raise NotFound(
            f"{report['id']} cannot be reproduced: {model['id']} has no boots of "
            f"{headline['unit_job']} on {headline['testbox']}"
        )
    table = _read(model, names=("parent", "commit"))
    usual = headline["testbox"]
    kit = _kit(Gathering(sources), sources, table, testbox or usual, usual, kernels=kernels)
    lasting = {key: report[key] for key in _LASTING_OF_REPORT if key in report}
    return replace(
        kit,
        id=report["id"],
        kind="report",
        created_at=str(report["created_at"]),
        page=sources.page(report["id"]),
        subject=report["subject"],
        mail=(report["mail"] or report["body"]).replace("\r\n", "\n"),
        json=json.dumps(lasting, indent=1) + "\n",
    )


def _runs(part: Row, headline: Row) -> bool:
    return part["testbox"] == headline["testbox"] and any(
        job["name"] == headline["unit_job"] for job in part["unit_jobs"]
    )


def _read(model: Row, names: Sequence[str] = ()) -> _ResultTable:
    """`names` replace those of the arms."""
    titles = names or [arm["name"] for arm in model["arms"]]
    kind, number = ids.read(model["id"])
    return _ResultTable(
        id=model["id"],
        kind=kind,
        model=model,
        arms=[
            _Arm(
                arm=arm["arm"],
                title=title,
                name=name,
                variant=arm["variant"],
                trouble=_unbuilt(arm["state"], arm["reason"]),
                settings=arm["settings"] or {},
            )
            for arm, title, name in zip(model["arms"], titles, directory_names(titles), strict=True)
        ],
        boots=model["boot_list"],
        rows=[row | {"words": in_words(row["against"])} for row in model["rows"]],
        first_k=model["first_k"],
        seed=number,
    )


def _unbuilt(state: str | None, reason: str | None) -> str:
    if state == "built":
        return ""
    return f"it does not build: {reason}" if reason else "it was not built"


def _testboxes(table: _ResultTable) -> list[str]:
    return list(dict.fromkeys(part["testbox"] for part in table.model["parts"]))


def _usual_testbox(sources: KitSources, table: _ResultTable) -> str:
    """Return the first testbox with boots that QEMU can repeat; else the first with boots, else the
    first.
    """
    testboxes = _testboxes(table)
    booted = [(testbox, boots) for testbox in testboxes if (boots := table.of(testbox, up=True))]
    for testbox, boots in booted:
        if "qemu.json" in (sources.boot(boots[0]["id"])["files"] or {}):
            return testbox
    return booted[0][0] if booted else testboxes[0]


def _kit(
    gathering: Gathering,
    sources: KitSources,
    table: _ResultTable,
    testbox: str,
    usual: str,
    *,
    kernels: bool,
) -> Kit:
    testboxes = _testboxes(table)
    if testbox not in testboxes:
        raise NotFound(
            f"{table.id} did not run on {cut(testbox, 80)!r}; it ran on {', '.join(testboxes)}"
        )
    parts = [part for part in table.model["parts"] if part["testbox"] == testbox]
    boots, payloads = _boots(gathering, sources, table, testbox, parts)
    if not boots:
        gathering.missing.append(f"boots: none came up on {testbox}")
    rows = _with_patches(sources, table, _rows(gathering, sources, table, testbox))
    tree = sources.tree(table.model["tree"])
    facts = [sources.boot(boot.id)["facts"] for boot in boots[:1]]
    return Kit(
        id=table.id,
        kind=table.kind,
        created_at=str(table.model["created_at"]),
        page=sources.page(table.id),
        tree=table.model["tree"],
        url=tree["url"],
        branch=tree["branch"],
        testbox=testbox,
        label=parts[0]["label"] or "",
        others=[name for name in testboxes if name != testbox],
        chosen=testbox != usual,
        qemu_version=next(
            (str(one["qemu_version"]) for one in facts if one.get("qemu_version")), "unknown"
        ),
        rows=_images(gathering, rows) if kernels else _without_images(gathering, rows),
        boots=boots,
        payloads=payloads,
        headlines=_headlines(table, testbox),
        json=_document(table, testbox),
        missing=tuple(gathering.missing),
        notes=tuple(gathering.notes),
    )


# --- boots and their payloads


def _boots(
    gathering: Gathering,
    sources: KitSources,
    table: _ResultTable,
    testbox: str,
    parts: Sequence[Row],
) -> tuple[list[KitBoot], list[KitPayload]]:
    """Return the boots in the order of their blocks, and their payloads other than the kernel."""
    listed = _in_blocks(table, table.of(testbox, up=True), parts)
    known = {boot["id"]: sources.boot(boot["id"]) for boot in listed}
    keys = list(dict.fromkeys(_payload_key(row) for row in known.values()))
    payloads = _payloads(gathering, sources, keys, known)
    programs = {job.name: job.program for payload in payloads for job in payload.unit_jobs}
    names = {arm.arm: arm.name for arm in table.arms}
    kit_boots: dict[str, KitBoot] = {}
    boots = []
    for boot in listed:
        row = known[boot["id"]]
        if boot["id"] not in kit_boots:
            kit_boots[boot["id"]] = replace(
                kit_parts.boot_of(gathering, {**row, "kernel": ""}, programs),
                payload=1 + keys.index(_payload_key(row)),
            )
        boots.append(replace(kit_boots[boot["id"]], kernel=names[boot["arm"]]))
    return boots, payloads


def _in_blocks(table: _ResultTable, boots: Sequence[Row], parts: Sequence[Row]) -> list[Row]:
    """Sort boots by block and job, and within them in the order in which they ran."""
    places = {
        k: {
            arm: place
            for place, arm in enumerate(block_order(len(table.arms), k - table.first_k, table.seed))
        }
        for k in {boot["k"] for boot in boots}
    }
    specs = [part["spec"] for part in parts]
    return sorted(
        boots,
        key=lambda boot: (
            boot["k"],
            specs.index(boot["spec"]) if boot["spec"] in specs else len(specs),
            places[boot["k"]][boot["arm"]],
            int(boot["id"][1:]),
        ),
    )


_Key = tuple[str, str | None, str | None]  # boot spec, sha256 of job.cpio and of rootfs.json


def _payload_key(row: Row) -> _Key:
    files = row["files"] or {}
    job, rootfs = (files.get(name, {}).get("sha256") for name in ("job.cpio", "rootfs.json"))
    return row["spec"], job, rootfs


def _payloads(
    gathering: Gathering, sources: KitSources, keys: Sequence[_Key], known: Mapping[str, Row]
) -> list[KitPayload]:
    """Return one payload per distinct job; jobs with the same root file system share it."""
    first: dict[str | None, KitPayload] = {}
    payloads = []
    for number, key in enumerate(keys, 1):
        rows = [row for row in known.values() if _payload_key(row) == key]
        jobs = [codec.typed(UnitJob, job) for job in sources.boot_order(rows[0]["id"])["unit_jobs"]]
        archive, programs = kit_parts.job_of(gathering, rows, jobs)
        same = first.get(key[2])
        payload = KitPayload(
            number=number,
            rootfs_number=number if same is None else same.number,
            rootfs=kit_parts.rootfs_of(gathering, rows) if same is None else same.rootfs,
            job=archive,
            programs=programs,
            unit_jobs=jobs,
        )
        first.setdefault(key[2], payload)
        payloads.append(payload)
    return payloads


# --- kernels


def _rows(
    gathering: Gathering, sources: KitSources, table: _ResultTable, testbox: str
) -> list[KitRow]:
    rows = []
    for arm in table.arms:
        trouble = arm.trouble or _unbooted(table, arm, testbox)
        # missing files of a kernel without boots do not make the kit incomplete
        kernel = _kernel(Gathering(sources) if trouble else gathering, arm)
        settings = _settings(arm.settings)
        if not trouble and (lost := _lost_boots(table, arm, testbox)):
            gathering.notes.append(f"{arm.title}: {lost}")
        rows.append(
            KitRow(
                title=arm.title,
                kernel=kernel,
                settings=settings,
                trouble=trouble,
                start=kernel.commit,
            )
        )
    return rows


def _unbooted(table: _ResultTable, arm: _Arm, testbox: str) -> str:
    """Return why the kit has no boot of this row; empty if it has one."""
    boots = [boot for boot in table.of(testbox, up=False) if boot["arm"] == arm.arm]
    if not boots:
        return f"it was not booted on {testbox}"
    if any(boot["outcome"] == "up" for boot in boots):
        return ""
    reason = f", {boots[0]['reason']}" if boots[0]["reason"] else ""
    count = "its only boot did not come" if len(boots) == 1 else f"none of {len(boots)} boots came"
    return f"{count} up ({boots[0]['outcome']}{reason})"


def _lost_boots(table: _ResultTable, arm: _Arm, testbox: str) -> str:
    """Return how many boots of this row did not come up, and the reason of the first; empty if all
    did.
    """
    boots = [boot for boot in table.of(testbox, up=False) if boot["arm"] == arm.arm]
    lost = [boot for boot in boots if boot["outcome"] != "up"]
    if not lost:
        return ""
    why = lost[0]["outcome"] + (f", {lost[0]['reason']}" if lost[0]["reason"] else "")
    return f"{len(lost)} of {len(boots)} boots did not come up, so they are not in this kit ({why})"


def _kernel(gathering: Gathering, arm: _Arm) -> KitKernel:
    try:
        return kit_parts.kernel_of(gathering, arm.name, f"kernel {arm.title}", arm.variant)
    except NotFound:  # it was never built
        return KitKernel(
            name=arm.name,
            commit=arm.variant["commit"],
            subject=arm.variant["subject"],
            kconfig=arm.variant["kconfig"],
            compiler=arm.variant["compiler"],
            compiler_version="",
            layout=arm.variant["layout"],
            image_sha256="none",
            image=None,
            config=None,
        )


def _settings(settings: Mapping[str, Any]) -> list[str]:
    cmdline = settings.get("cmdline")
    return [
        *([f"kernel command line: {cmdline}"] if cmdline else []),
        *(f"sysctl {name} = {value}" for name, value in (settings.get("sysctl") or {}).items()),
    ]


def _images(gathering: Gathering, rows: Sequence[KitRow]) -> list[KitRow]:
    images = {row.kernel.image.sha256: row.kernel.image.size for row in rows if row.kernel.image}
    few = sum(images.values()) <= limits.KIT_IMAGE_BYTES
    return list(rows) if few else _without_images(gathering, rows)


def _without_images(gathering: Gathering, rows: Sequence[KitRow]) -> list[KitRow]:
    gathering.notes.append(kit_parts.WITHOUT_IMAGES)
    return [replace(row, kernel=replace(row.kernel, image=None)) for row in rows]


# --- patches


def _with_patches(sources: KitSources, table: _ResultTable, rows: Sequence[KitRow]) -> list[KitRow]:
    commits = list(dict.fromkeys(row.kernel.commit for row in rows))
    parents = {commit: sources.first_parents(commit, KIT_COMMITS + 1) for commit in commits}
    lineages_ = lineages({commit: below or [commit] for commit, below in parents.items()})
    patches, reasons = _patches(sources, lineages_)
    known = {commit: lineages_[commit] for commit in patches}
    owner: dict[str, str] = {}  # commit -> directory of the first kernel of it
    for row in rows:
        owner.setdefault(row.kernel.commit, row.kernel.name)
    return [
        _with_series(row, patches, known, owner, "" if number == 0 else _why(row, reasons, parents))
        for number, row in enumerate(rows)
    ]


def _with_series(
    row: KitRow,
    patches: Mapping[str, Sequence[bytes]],
    known: Mapping[str, Lineage],
    owner: Mapping[str, str],
    why: str,
) -> KitRow:
    commit = row.kernel.commit
    start, way = chain(commit, known)
    is_owner = owner[commit] == row.kernel.name
    return replace(
        row,
        patches=patches.get(commit, ()) if is_owner else (),
        series=[
            patch_path(owner[one], number + 1) for one in way for number in range(len(patches[one]))
        ],
        start=start,
        no_patches="" if way or not is_owner else why,
    )


def _why(row: KitRow, reasons: Mapping[str, str], parents: Mapping[str, Sequence[str]]) -> str:
    commit = row.kernel.commit
    if commit in reasons:
        return reasons[commit]
    if not parents[commit]:
        return "the mirror no longer has its commit"
    return f"no other kernel of this table is among the {KIT_COMMITS} commits below it"


def _patches(
    sources: KitSources, wanted: Mapping[str, Lineage]
) -> tuple[dict[str, list[bytes]], dict[str, str]]:
    """Return the patches of each complete lineage, and the reason for each of the others."""
    patches: dict[str, list[bytes]] = {}
    reasons: dict[str, str] = {}
    room = limits.KIT_PATCH_BYTES
    for commit, lineage in wanted.items():
        own = []
        for one in lineage.commits:
            patch, why = sources.patch(one)
            if patch is None or len(patch) > room:
                reasons[commit] = f"of commit {one[:12]}, {why or 'they are too large for a kit'}"
                break
            room -= len(patch)
            own.append(patch)
        else:
            patches[commit] = own
    return patches, reasons


# --- results


def _headlines(table: _ResultTable, testbox: str) -> list[Headline]:
    """Return a table for each unit job's headline, or for the first metric of its benchmark if it
    has none.
    """
    of_testbox = [row for row in table.rows if row["testbox"] == testbox]
    chosen: dict[tuple[str, str], None] = {}
    for unit_job in dict.fromkeys(row["unit_job"] for row in of_testbox):
        own = [row for row in of_testbox if row["unit_job"] == unit_job and not row["counter"]]
        first = [row for row in own if row.get("headline")] or own[:1]
        chosen |= dict.fromkeys((unit_job, row["metric"]) for row in first)
    return [
        _headline(
            table,
            [row for row in of_testbox if (row["unit_job"], row["metric"]) == (unit_job, metric)],
        )
        for unit_job, metric in sorted(chosen)
    ]


def _headline(table: _ResultTable, rows: Sequence[Row]) -> Headline:
    names = {arm.arm: arm.name for arm in table.arms}
    levels: dict[str, float] = {}
    for arm, side in (("reference", "base"), ("arm", "head")):  # a row's own level goes last
        for row in rows:
            if row[side]["mean"] is not None:
                levels[names[row[arm]]] = row[side]["mean"]
    return Headline(
        unit_job=rows[0]["unit_job"],
        metric=rows[0]["metric"],
        unit=rows[0].get("unit") or "",
        better=rows[0].get("better"),
        level=rows[0].get("level"),
        levels=levels,
        changes=[
            ReportedChange(
                kernel=names[row["arm"]],
                reference=names[row["reference"]],
                words=row["words"],
                verdict=row["verdict"],
                change_pct=row["change_pct"],
            )
            for row in rows
        ],
    )


def _document(table: _ResultTable, testbox: str) -> str:
    """Return the table as JSON, without fields that may change later."""
    names = {arm.arm: arm.name for arm in table.arms}
    document = {
        "id": table.id,
        "kind": table.kind,
        "tree": table.model["tree"],
        "testbox": testbox,
        "created_at": str(table.model["created_at"]),
        "boots": table.model["boots"],
        "unit_jobs": [
            job
            for part in table.model["parts"]
            if part["testbox"] == testbox
            for job in part["unit_jobs"]
        ],
        "kernels": [
            {
                "name": arm.title,
                "directory": arm.name,
                "settings": dict(arm.settings),
                **{
                    key: arm.variant[key]
                    for key in ("commit", "subject", "kconfig", "compiler", "layout")
                },
            }
            for arm in table.arms
        ],
        "rows": [
            {
                "kernel": names[row["arm"]],
                "reference": names[row["reference"]],
                "against": row["words"],
                **{key: row[key] for key in _LASTING if key in row},
            }
            for row in table.rows
            if row["testbox"] == testbox
        ],
    }
    return json.dumps(document, indent=1) + "\n"
