"""Testbox files: `workers/testboxes/<name>.yaml`, one testbox each.

Both sides read the same file: the master for nr_cpu, label and boot time, the worker for how to
drive it. Loading is strict: an unknown, missing or ill-typed key is a TestboxError that names file
and line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final, get_args

from swingbot_jobs.codec import at_least, one_of
from swingbot_jobs.contract import facts
from swingbot_jobs.contract.kconfig import NoKconfig, load_kconfigs, parts_of
from swingbot_jobs.contract.trust import Trust
from swingbot_jobs.testbox import cluster, ssh, tuning
from swingbot_jobs.testbox.cluster import FindNode
from swingbot_jobs.testbox.definition import (
    CAN_SET,
    CMDLINE,
    DEFAULT_BOOT_SECONDS,
    SYSCTL,
    ClusterDriver,
    CommandDriver,
    Driver,
    LkpEngine,
    Perturbations,
    QemuDriver,
    Testbox,
)
from swingbot_jobs.testbox.table import Seconds, TestboxError, parse, read, refuse
from swingbot_jobs.yaml_lines import LocatedValue

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
DRIVERS: Final = tuple(driver.name for driver in get_args(Driver))


@dataclass(frozen=True, slots=True, kw_only=True)
class _TestboxFile:
    """A testbox file as written, without the table of its driver."""

    name: str
    tbox_group: str
    driver: Annotated[str, one_of(*DRIVERS)]
    description: str = ""
    model: str
    nr_cpu: Annotated[int, at_least(1)]
    memory_mb: Annotated[int, at_least(64)]
    nr_node: Annotated[int, at_least(1)] | None = None
    label: str = ""
    repeatable: bool = False
    perturbations: Perturbations | None = None
    boot_seconds: Seconds = DEFAULT_BOOT_SECONDS
    longest_boot_seconds: Seconds | None = None
    cmdline: str = ""
    accepts: Trust = "trusted"
    demand: Mapping[str, str] = field(default_factory=dict)
    tuning: str = ""
    tuning_without: tuple[str, ...] = ()
    can_set: tuple[Annotated[str, one_of(*CAN_SET)], ...] | None = None
    engine: Annotated[str, one_of("swingbot", "lkp")] = "swingbot"
    lkp: LkpEngine | None = None
    kconfig: str = ""


# fields that a testbox has as its file says
_PLAIN: Final = (
    *("name", "tbox_group", "description", "model", "nr_cpu", "memory_mb", "nr_node", "label"),
    *("repeatable", "perturbations", "boot_seconds", "longest_boot_seconds", "accepts"),
    "kconfig",
)


def load_all(directory: Path) -> dict[str, Testbox]:
    """Return every `*.yaml` of `directory` by name.

    Raises TestboxError for the first invalid file.
    """
    paths = sorted(directory.glob("*.yaml"))
    tunings = _tunings(directory) if paths else {}
    kconfigs = load_kconfigs(directory.parent / "kconfig")
    testboxes = {}
    for path in paths:
        testbox = testboxes[path.stem] = _load(path, tunings)
        try:
            if testbox.kconfig:
                kconfigs.text(testbox.kconfig)
        except NoKconfig as error:
            refuse(parse(path.read_text(), str(path)), str(error), "kconfig")
    return testboxes


def load_file(path: Path) -> Testbox:
    """Read `<workers>/testboxes/<name>.yaml` with the tuning list that it names,
    from `<workers>/tuning/`.
    """
    return _load(path, _tunings(path.parent))


def _tunings(directory: Path) -> dict[str, tuning.Tuning]:
    try:
        return tuning.load_all(directory.parent / "tuning")
    except tuning.TuningError as error:
        raise TestboxError(str(error)) from error


def _load(path: Path, tunings: Mapping[str, tuning.Tuning]) -> Testbox:
    def find(name: str) -> Testbox | None:
        node = path.with_name(f"{name}.yaml")
        return (
            load(node.read_text(), str(node), tunings)
            if NAME.fullmatch(name) and node.is_file()
            else None
        )

    return load(path.read_text(), str(path), tunings, find)


def _alone(name: str) -> Testbox | None:
    """Reject a cluster where only a single testbox is allowed: clusters cannot be nested."""
    return None


def load(
    text: str,
    file_name: str,
    tunings: Mapping[str, tuning.Tuning] = MappingProxyType({}),
    find: FindNode = _alone,
) -> Testbox:
    """Read one testbox file.

    `file_name` is for messages, and its stem must be the testbox's name;
    `tunings`: the lists that it may name.

    `find` returns the testboxes that a cluster names, or None for an unknown name.
    """
    table = parse(text, file_name)
    rest = dict(table.table or {})
    kind = rest["driver"].text if "driver" in rest else None
    driven = rest.pop(kind, None) if kind and kind in DRIVERS else None
    file = read(_TestboxFile, replace(table, content=rest))
    if driven is None:
        refuse(table, f"{kind} is missing")
    driver = _driver(driven, file.driver, find)
    quiet = _tuning(table, file, tunings)
    testbox = Testbox(
        **{name: getattr(file, name) for name in _PLAIN},
        driver=driver,
        cmdline=" ".join(filter(None, (quiet.cmdline if quiet else "", file.cmdline))),
        demand={**(quiet.demand if quiet else {}), **_demand(table, file.demand)},
        tuning=quiet,
        lkp=_engine(table, file),
        can_set=_can_set(table, file, driver),
    )
    _check(testbox, table, Path(file_name).stem)
    return testbox


def _driver(table: LocatedValue, kind: str, find: FindNode) -> Driver:
    if kind == "cluster":
        return cluster.parse(table, find)
    if kind == "ssh":
        return ssh.parse(table)
    return read(QemuDriver, table, kind) if kind == "qemu" else read(CommandDriver, table, kind)


def _check(testbox: Testbox, table: LocatedValue, stem: str) -> None:
    driver = testbox.driver
    icount = isinstance(driver, QemuDriver) and driver.accel == "icount"
    if not NAME.fullmatch(testbox.name) or testbox.name != stem:
        refuse(
            table,
            f"name {testbox.name!r} must be the file's name without .yaml ({stem!r}), of"
            " letters, digits, '.', '_', '-'",
            "name",
        )
    if icount and testbox.nr_cpu != 1:
        refuse(
            table,
            f"nr_cpu is {testbox.nr_cpu}, but with accel icount it must be 1:"
            " more CPUs hang at boot under QEMU's instruction counting",
            "nr_cpu",
        )
    if testbox.kconfig:
        try:
            parts_of(testbox.kconfig)
        except NoKconfig as error:
            refuse(table, str(error), "kconfig")
    if isinstance(driver, QemuDriver):
        _check_nodes(testbox, table)
    if isinstance(driver, ClusterDriver):
        cluster.check(testbox, driver, table)
    if testbox.repeatable and not icount:
        refuse(
            table,
            "repeatable is true, but only a qemu testbox with accel icount repeats its results"
            " exactly",
            "repeatable",
        )


def _check_nodes(testbox: Testbox, table: LocatedValue) -> None:
    nodes = testbox.nr_node or 1
    if (testbox.nr_cpu > 1 and testbox.nr_cpu % nodes) or testbox.memory_mb % nodes:
        refuse(
            table,
            f"nr_node is {nodes}, and QEMU gives each node an equal share: make nr_cpu"
            f" ({testbox.nr_cpu}) and memory_mb ({testbox.memory_mb}) multiples of it, or nr_cpu 1",
            "nr_node",
        )


def _tuning(
    table: LocatedValue, file: _TestboxFile, tunings: Mapping[str, tuning.Tuning]
) -> tuning.Tuning | None:
    if not file.tuning:
        if file.tuning_without:
            refuse(
                table,
                "tuning_without removes items from a tuning list, but 'tuning: <list>' is missing",
                "tuning_without",
            )
        return None
    if file.tuning not in tunings:
        refuse(
            table,
            f"there is no tuning list {file.tuning!r};"
            f" workers/tuning/ has {', '.join(sorted(tunings)) or 'none'}",
            "tuning",
        )
    try:
        return tunings[file.tuning].without(file.tuning_without)
    except tuning.TuningError as error:
        refuse(table, str(error), "tuning_without")


def _can_set(table: LocatedValue, file: _TestboxFile, driver: Driver) -> tuple[str, ...]:
    """Return the settings that a job may use: those in the file that driver and engine support."""
    if isinstance(driver, ClusterDriver):
        nodes = [set(node.can_set) for node in driver.nodes.values()]
        return tuple(what for what in CAN_SET if all(what in node for node in nodes))
    if file.can_set is None:
        alone = file.engine == "lkp" or isinstance(driver, CommandDriver)
        return (SYSCTL,) if alone else CAN_SET
    if file.engine == "lkp" and CMDLINE in file.can_set:
        refuse(
            table,
            "can_set has cmdline, but a testbox with the engine lkp has one kernel command line:"
            " that of its file; remove it",
            "can_set",
        )
    return tuple(what for what in CAN_SET if what in file.can_set)


def _demand(table: LocatedValue, given: Mapping[str, str]) -> dict[str, str]:
    demands: dict[str, str] = {}
    for key, wanted in given.items():
        try:
            name, wanted = facts.demand(key, wanted)
        except facts.DemandError as error:
            refuse(table, str(error), "demand", key)
        if name in demands:
            refuse(table, f"{key} is demanded twice", "demand", key)
        demands[name] = wanted
    return demands


def _engine(table: LocatedValue, file: _TestboxFile) -> LkpEngine | None:
    if file.engine != "lkp" and file.lkp is not None:
        refuse(
            table,
            "lkp says where lkp-tests is, but nothing uses it: set 'engine: lkp' too, or remove it",
            "lkp",
        )
    if file.engine == "lkp" and file.lkp is None:
        refuse(table, "engine lkp needs a table lkp with src, the directory of lkp-tests", "engine")
    return file.lkp
