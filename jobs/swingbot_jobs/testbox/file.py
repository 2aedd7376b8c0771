"""Testbox files: `workers/testboxes/<name>.yaml`, one testbox each.

Both sides read the same file: the master for nr_cpu, label and boot time, the worker for how to
drive it. Loading is strict: an unknown, missing or ill-typed key is a TestboxError that names file
and line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, get_args

from swingbot_jobs.contract import facts
from swingbot_jobs.contract.trust import Trust, trust_of
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
from swingbot_jobs.testbox.table import StrictTable, TestboxError

LKP_SRC: Final = re.compile(r"(?:/[A-Za-z0-9._+-]+)+/?")  # it is used in a shell script
COMMIT: Final = re.compile(r"[0-9a-f]{7,40}")
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
DRIVERS: Final = tuple(driver.name for driver in get_args(Driver))
ACCELERATORS: Final = ("icount", "tcg", "kvm")
ENGINES: Final = ("swingbot", "lkp")


def load_all(directory: Path) -> dict[str, Testbox]:
    """Return every `*.yaml` of `directory` by name.

    Raises TestboxError for the first invalid file.
    """
    paths = sorted(directory.glob("*.yaml"))
    tunings = _tunings(directory) if paths else {}
    testboxes = (_load(path, tunings) for path in paths)
    return {testbox.name: testbox for testbox in testboxes}


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
    table = StrictTable.parse(text, file_name)
    quiet = _tuning(table, tunings)
    kind = table.text("driver")
    if kind not in DRIVERS:
        table.refuse("driver", f"driver {kind!r} is unknown; known are {', '.join(DRIVERS)}")
    driver, engine = _driver(table, kind, find), _engine(table)
    testbox = Testbox(
        name=table.text("name"),
        tbox_group=table.text("tbox_group"),
        driver=driver,
        description=table.text("description", ""),
        model=table.text("model"),
        nr_cpu=table.whole("nr_cpu", at_least=1),
        memory_mb=table.whole("memory_mb", at_least=64),
        label=table.text("label", ""),
        repeatable=table.truth("repeatable", False),
        perturbations=_perturbations(table.table("perturbations"))
        if table.has("perturbations")
        else None,
        boot_seconds=table.number("boot_seconds", DEFAULT_BOOT_SECONDS),
        cmdline=" ".join(filter(None, (quiet.cmdline if quiet else "", table.text("cmdline", "")))),
        accepts=_accepts(table),
        demand={
            **(quiet.demand if quiet else {}),
            **(_demand(table.table("demand")) if table.has("demand") else {}),
        },
        tuning=quiet,
        lkp=engine,
        can_set=_can_set(table, driver, engine),
    )
    table.done()
    _check(testbox, table, Path(file_name).stem)
    return testbox


def _driver(table: StrictTable, kind: str, find: FindNode) -> Driver:
    if kind == "cluster":
        return cluster.parse(table.table("cluster"), find)
    if kind == "ssh":
        return ssh.parse(table.table("ssh"))
    return _qemu(table.table("qemu")) if kind == "qemu" else _command(table.table("command"))


def _check(testbox: Testbox, table: StrictTable, stem: str) -> None:
    if not NAME.fullmatch(testbox.name) or testbox.name != stem:
        table.refuse(
            "name",
            (
                f"name {testbox.name!r} must be the file's name without .yaml ({stem!r}), of"
                " letters, digits, '.', '_', '-'"
            ),
        )
    if (
        isinstance(testbox.driver, QemuDriver)
        and testbox.driver.accel == "icount"
        and testbox.nr_cpu != 1
    ):
        table.refuse(
            "nr_cpu",
            (
                f"nr_cpu is {testbox.nr_cpu}, but with accel icount it must be 1:"
                " more CPUs hang at boot under QEMU's instruction counting"
            ),
        )
    if isinstance(testbox.driver, ClusterDriver):
        cluster.check(testbox, testbox.driver, table)
    if testbox.repeatable and not (
        isinstance(testbox.driver, QemuDriver) and testbox.driver.accel == "icount"
    ):
        table.refuse(
            "repeatable",
            (
                "repeatable is true, but only a qemu testbox with accel icount repeats its results"
                " exactly"
            ),
        )


def _perturbations(table: StrictTable) -> Perturbations:
    perturbations = Perturbations(
        seed=table.whole("seed"),
        count=table.whole("count", at_least=1),
        max_ms=table.whole("max_ms", at_least=1),
    )
    table.done()
    return perturbations


def _tuning(table: StrictTable, tunings: Mapping[str, tuning.Tuning]) -> tuning.Tuning | None:
    name, without = table.text("tuning", ""), table.take("tuning_without", [])
    if not isinstance(without, list) or not all(isinstance(item, str) for item in without):
        table.refuse("tuning_without", "tuning_without must be a list of items of the tuning list")
    if without and not name:
        table.refuse(
            "tuning_without",
            "tuning_without removes items from a tuning list, but 'tuning: <list>' is missing",
        )
    if not name:
        return None
    if name not in tunings:
        table.refuse(
            "tuning",
            (
                f"there is no tuning list {name!r};"
                f" workers/tuning/ has {', '.join(sorted(tunings)) or 'none'}"
            ),
        )
    try:
        return tunings[name].without(without)
    except tuning.TuningError as error:
        table.refuse("tuning_without", str(error))


def _can_set(table: StrictTable, driver: Driver, engine: LkpEngine | None) -> tuple[str, ...]:
    """Return the settings that a job may use: those in the file that driver and engine support."""
    if isinstance(driver, ClusterDriver):
        nodes = [set(node.can_set) for node in driver.nodes.values()]
        return tuple(what for what in CAN_SET if all(what in node for node in nodes))
    if not table.has("can_set"):
        alone = engine is not None or isinstance(driver, CommandDriver)
        return (SYSCTL,) if alone else CAN_SET
    given = table.take("can_set")
    if not isinstance(given, list) or any(what not in CAN_SET for what in given):
        table.refuse(
            "can_set", (f"can_set must be a list of {' and '.join(CAN_SET)}; [] allows none")
        )
    if engine is not None and CMDLINE in given:
        table.refuse(
            "can_set",
            "can_set has cmdline, but a testbox with the engine lkp has one kernel command line:"
            " that of its file; remove it",
        )
    return tuple(what for what in CAN_SET if what in given)


def _accepts(table: StrictTable) -> Trust:
    try:
        return trust_of(table.text("accepts", "trusted"))
    except ValueError:
        table.refuse(
            "accepts", f"accepts is {table.text('accepts')!r}, must be trusted or untrusted"
        )


def _demand(table: StrictTable) -> dict[str, str]:
    demands: dict[str, str] = {}
    for key in table.names():
        try:
            name, wanted = facts.demand(key, table.scalar(key))
        except facts.DemandError as error:
            table.refuse(key, str(error))
        if name in demands:
            table.refuse(key, f"{key} is demanded twice")
        demands[name] = wanted
    return demands


def _qemu(table: StrictTable) -> QemuDriver:
    default = QemuDriver(accel="tcg")
    accel = table.text("accel")
    if accel not in ACCELERATORS:
        table.refuse("accel", f"accel {accel!r} is unknown; known are {', '.join(ACCELERATORS)}")
    driver = QemuDriver(
        accel=accel,
        icount_shift=table.whole("icount_shift", default.icount_shift, at_least=0),
        cpu=table.text("cpu", default.cpu),
    )
    table.done()
    return driver


def _engine(table: StrictTable) -> LkpEngine | None:
    engine = table.text("engine", ENGINES[0])
    if engine not in ENGINES:
        table.refuse("engine", f"engine {engine!r} is unknown; known are {', '.join(ENGINES)}")
    if engine != "lkp":
        if table.has("lkp"):
            table.refuse(
                "lkp",
                (
                    "lkp says where lkp-tests is, but nothing would use it: set 'engine: lkp' too,"
                    " or remove it"
                ),
            )
        return None
    if not table.has("lkp"):
        table.refuse("engine", "engine lkp needs a table lkp with src, the directory of lkp-tests")
    return _lkp(table.table("lkp"))


def _lkp(table: StrictTable) -> LkpEngine:
    engine = LkpEngine(
        src=table.text("src"), commit=table.scalar("commit") if table.has("commit") else ""
    )
    if not LKP_SRC.fullmatch(engine.src) or "/../" in f"{engine.src}/":
        table.refuse(
            "src",
            (
                f"src is {engine.src!r}, must be the absolute path of an lkp-tests directory,"
                " of letters, digits and '/', '.', '_', '-', '+'"
            ),
        )
    if engine.commit and not COMMIT.fullmatch(engine.commit):
        table.refuse("commit", f"commit is {engine.commit!r}, must be 7 to 40 hex digits")
    table.done()
    return engine


def _command(table: StrictTable) -> CommandDriver:
    argv = table.take("argv")
    if not isinstance(argv, list) or not argv or not all(isinstance(word, str) for word in argv):
        table.refuse("argv", "argv must be a list of at least one word, all strings")
    table.done()
    return CommandDriver(argv=tuple(argv))
