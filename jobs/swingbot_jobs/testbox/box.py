"""A testbox: one measured machine, as described by `workers/testboxes/<name>.yaml`.

Both sides read the same file: the master for nr_cpu, label and boot time, the worker for how to
drive it. Loading is strict: an unknown, missing or ill-typed key is a TestboxError that names file and line.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NoReturn

import yaml

from swingbot_jobs.contract import facts
from swingbot_jobs.contract.trust import Trust, trust_of
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.testbox import cluster as wired
from swingbot_jobs.testbox import ssh, tuning
from swingbot_jobs.testbox.cluster import ClusterDriver, FindNode

LKP_SRC: Final = re.compile(r"(?:/[A-Za-z0-9._+-]+)+/?")  # it stands in a shell script
COMMIT: Final = re.compile(r"[0-9a-f]{7,40}")
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
DRIVERS: Final = ("qemu", "command", "ssh", "cluster")
ACCELERATORS: Final = ("icount", "tcg", "kvm")
ENGINES: Final = ("swingbot", "lkp")
# One boot of the shipped VMs takes about 3 s of wall clock; limits are multiples of this.
DEFAULT_BOOT_SECONDS: Final = 10.0


class TestboxError(ValueError):
    """A testbox file is wrong; the message names file and line and says what to change."""

    __test__ = False  # not a pytest class, whatever its name begins with


@dataclass(frozen=True, slots=True, kw_only=True)
class Perturbations:
    """A seeded list of delays before the job: what makes the boots of a repeatable testbox differ honestly.

    `count` delays are spread evenly over (0, max_ms] milliseconds in an order given by `seed`; a list that is used
    up goes on with other delays from the same range, so it never ends and never repeats exactly.
    """

    seed: int
    count: int
    max_ms: int

    def __call__(self, k: int) -> int:
        """The k-th delay (k from 0) in microseconds, at least 1."""
        if k < 0:
            raise ValueError(f"perturbation {k} does not exist: they count from 0")
        slots = sorted(range(self.count), key=lambda slot: _draw(f"slot:{self.seed}:{slot}"))
        slot, step = slots[k % self.count], self.max_ms * 1000 / self.count
        return max(1, int((slot + _draw(f"delay:{self.seed}:{k}")) * step))


def _draw(text: str) -> float:
    """A number in [0, 1) that depends on `text` alone: the same on every machine and Python version."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48


@dataclass(frozen=True, slots=True, kw_only=True)
class QemuDriver:
    """How QEMU is started. `icount_shift` N means 2^N virtual nanoseconds per instruction; icount boxes have one vCPU."""

    accel: str
    icount_shift: int = 3
    # Without erms and fsrm a `rep stosb` is one instruction per 64 bits and no longer drowns the mm code;
    # rdrand and rdseed would bring in entropy of the host.
    cpu: str = "max,-erms,-fsrm,-rdrand,-rdseed"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandDriver:
    """A program of the operator that boots the machine; see docs of `swingbot_worker.testbox.command`."""

    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LkpEngine:
    """Unit jobs are run by an installed lkp-tests instead of by our own runner.

    `src` is its directory: on the machine that runs the job, which for a virtual testbox means on the worker's host, from where it is copied
    into the guest. `commit` is the one that has to be there, as git abbreviates it; empty where any will do.
    """

    src: str
    commit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Testbox:
    """Facts of one testbox. Sizes in MiB, times in seconds of wall clock."""

    __test__ = False

    name: str
    tbox_group: str
    driver: QemuDriver | CommandDriver | ssh.SshDriver | ClusterDriver
    description: str
    model: str
    nr_cpu: int
    memory_mb: int
    label: str = ""  # shown wherever its numbers show
    repeatable: bool = False  # bit-identical results on a busy host: needs no host lease, and equal k means equal boots
    perturbations: Perturbations | None = None
    boot_seconds: float = (
        DEFAULT_BOOT_SECONDS  # usual time of a boot without a job, for limits and estimates
    )
    cmdline: str = ""  # added to the kernel command line
    accepts: Trust = "trusted"  # untrusted: boots anybody's kernel, because it is thrown away or cleaned afterwards
    demand: Mapping[str, str] = field(
        default_factory=dict
    )  # facts that have to be so in each of its boots, whatever runs; the tuning list's are in it
    tuning: tuning.Tuning | None = None  # how it is kept quiet
    lkp: LkpEngine | None = None  # set where the engine is lkp

    @property
    def engine(self) -> str:
        """What runs the unit jobs on it, once the driver has booted it."""
        return "lkp" if self.lkp else "swingbot"

    @property
    def virtual(self) -> bool:
        """Whether it is a program on the worker's host."""
        return (
            self.driver.virtual
            if isinstance(self.driver, ClusterDriver)
            else isinstance(self.driver, QemuDriver)
        )

    @property
    def nodes(self) -> tuple[str, ...]:
        """The testboxes that it is made of, in the order in which they are leased; none, unless it is a cluster."""
        return self.driver.boxes if isinstance(self.driver, ClusterDriver) else ()

    @property
    def cluster(self) -> str:
        """What a job's `cluster` has to be here."""
        return self.tbox_group if isinstance(self.driver, ClusterDriver) else wired.LOCALHOST

    def perturbation(self, k: int) -> int:
        """Delay before the job of the k-th boot in microseconds; 0 on a testbox that is given none."""
        return self.perturbations(k) if self.perturbations else 0

    def demanded(self, unit_jobs: Iterable[UnitJob]) -> list[UnitJob]:
        """The unit jobs with what the testbox demands; what a job says of the same fact counts more."""
        return [
            replace(job, demand=dict(sorted({**self.demand, **job.demand}.items())))
            if self.demand
            else job
            for job in unit_jobs
        ]

    def to_json(self) -> dict[str, Any]:
        """The facts as they are stored and shown, flat enough for SQL; `driver` is the driver's name."""
        if isinstance(
            self.driver, ClusterDriver
        ):  # its nodes are testboxes with facts of their own
            plain = replace(self, driver=CommandDriver(argv=())).to_json()
            return {name: told for name, told in plain.items() if name != "command"} | {
                "driver": "cluster",
                "cluster": self.driver.to_json(),
            }
        facts = asdict(self) | {"engine": self.engine}
        kind = (
            "qemu"
            if isinstance(self.driver, QemuDriver)
            else "ssh"
            if isinstance(self.driver, ssh.SshDriver)
            else "command"
        )
        quiet = {
            "tuning": self.tuning.name if self.tuning else None,
            "tuning_without": list(self.tuning.left_out) if self.tuning else [],
        }
        driven = (
            self.driver.to_json() if isinstance(self.driver, ssh.SshDriver) else facts["driver"]
        )
        return facts | {"driver": kind, kind: driven} | quiet


def load_all(directory: Path) -> dict[str, Testbox]:
    """Every `*.yaml` of `directory` by name; the first wrong file raises TestboxError."""
    boxes = (load_file(path) for path in sorted(directory.glob("*.yaml")))
    return {box.name: box for box in boxes}


def remembered(facts: Mapping[str, Any]) -> Testbox:
    """A testbox as `to_json` told it: what comparisons and bisections need of it. Its driver is lost, so nobody can boot it.

    Raises KeyError if these are not such facts.
    """
    kept = (
        "name",
        "tbox_group",
        "description",
        "model",
        "nr_cpu",
        "memory_mb",
        "label",
        "repeatable",
        "boot_seconds",
        "cmdline",
        "accepts",
        "demand",
    )
    return Testbox(driver=CommandDriver(argv=()), **{name: facts[name] for name in kept})


def load_file(path: Path) -> Testbox:
    """Read `<workers>/testboxes/<name>.yaml` with the tuning list that it names, from `<workers>/tuning/`."""
    try:
        tunings = tuning.load_all(path.parent.parent / "tuning")
    except tuning.TuningError as error:
        raise TestboxError(str(error)) from error

    def find(name: str) -> Testbox | None:
        node = path.with_name(f"{name}.yaml")
        return (
            load(node.read_text(), str(node), tunings)
            if NAME.fullmatch(name) and node.is_file()
            else None
        )

    return load(path.read_text(), str(path), tunings, find)


def _alone(name: str) -> Testbox | None:
    """For a file by itself, and for a node: a cluster of clusters is none."""
    return None


def load(
    text: str,
    file_name: str,
    tunings: Mapping[str, tuning.Tuning] = MappingProxyType({}),
    find: FindNode = _alone,
) -> Testbox:
    """Read one testbox file. `file_name` is for messages, and its stem must be the testbox's name; `tunings`: the lists that it may name.

    `find` gives the testboxes that a cluster names; None for one that there is not.
    """
    table = _Table.parse(text, file_name)
    quiet = _tuning(table, tunings)
    kind = table.text("driver")
    if kind not in DRIVERS:
        table.refuse("driver", f"driver {kind!r} is unknown; known are {', '.join(DRIVERS)}")
    box = Testbox(
        name=table.text("name"),
        tbox_group=table.text("tbox_group"),
        driver=_driver(table, kind, find),
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
        lkp=_engine(table),
    )
    table.done()
    _check(box, table, Path(file_name).stem)
    return box


def _driver(
    table: _Table, kind: str, find: FindNode
) -> QemuDriver | CommandDriver | ssh.SshDriver | ClusterDriver:
    if kind == "cluster":
        return wired.parse(table.table("cluster"), find)
    if kind == "ssh":
        return ssh.parse(table.table("ssh"))
    return _qemu(table.table("qemu")) if kind == "qemu" else _command(table.table("command"))


def _check(box: Testbox, table: _Table, stem: str) -> None:
    if not NAME.fullmatch(box.name) or box.name != stem:
        table.refuse(
            "name",
            f"name {box.name!r} must be the file's name without .yaml ({stem!r}), of letters, digits, '.', '_', '-'",
        )
    if isinstance(box.driver, QemuDriver) and box.driver.accel == "icount" and box.nr_cpu != 1:
        table.refuse(
            "nr_cpu",
            f"nr_cpu is {box.nr_cpu}, but with accel icount it must be 1: more CPUs hang at boot under QEMU's instruction counting",
        )
    if isinstance(box.driver, ClusterDriver):
        wired.check(box, box.driver, table)
    if box.repeatable and not (isinstance(box.driver, QemuDriver) and box.driver.accel == "icount"):
        table.refuse(
            "repeatable",
            "repeatable is true, but only a qemu testbox with accel icount repeats its results exactly",
        )


def _perturbations(table: _Table) -> Perturbations:
    made = Perturbations(
        seed=table.whole("seed"),
        count=table.whole("count", at_least=1),
        max_ms=table.whole("max_ms", at_least=1),
    )
    table.done()
    return made


def _tuning(table: _Table, tunings: Mapping[str, tuning.Tuning]) -> tuning.Tuning | None:
    name, without = table.text("tuning", ""), table.take("tuning_without", [])
    if not isinstance(without, list) or not all(isinstance(item, str) for item in without):
        table.refuse("tuning_without", "tuning_without must be a list of items of the tuning list")
    if without and not name:
        table.refuse(
            "tuning_without",
            "tuning_without takes items out of a tuning list, but no 'tuning: <list>' is given",
        )
    if not name:
        return None
    if name not in tunings:
        table.refuse(
            "tuning",
            f"there is no tuning list {name!r}; workers/tuning/ has {', '.join(sorted(tunings)) or 'none'}",
        )
    try:
        return tunings[name].without(without)
    except tuning.TuningError as error:
        table.refuse("tuning_without", str(error))


def _accepts(table: _Table) -> Trust:
    try:
        return trust_of(table.text("accepts", "trusted"))
    except ValueError:
        table.refuse(
            "accepts", f"accepts is {table.text('accepts')!r}, must be trusted or untrusted"
        )


def _demand(table: _Table) -> dict[str, str]:
    found: dict[str, str] = {}
    for key in table.names():
        try:
            name, wanted = facts.demand(key, table.scalar(key))
        except facts.DemandError as error:
            table.refuse(key, str(error))
        if name in found:
            table.refuse(key, f"{key} is demanded twice")
        found[name] = wanted
    return found


def _qemu(table: _Table) -> QemuDriver:
    default = QemuDriver(accel="tcg")
    accel = table.text("accel")
    if accel not in ACCELERATORS:
        table.refuse("accel", f"accel {accel!r} is unknown; known are {', '.join(ACCELERATORS)}")
    made = QemuDriver(
        accel=accel,
        icount_shift=table.whole("icount_shift", default.icount_shift, at_least=0),
        cpu=table.text("cpu", default.cpu),
    )
    table.done()
    return made


def _engine(table: _Table) -> LkpEngine | None:
    engine = table.text("engine", ENGINES[0])
    if engine not in ENGINES:
        table.refuse("engine", f"engine {engine!r} is unknown; known are {', '.join(ENGINES)}")
    if engine != "lkp":
        if table.has("lkp"):
            table.refuse(
                "lkp",
                "lkp says where lkp-tests is, but nothing would use it: set 'engine: lkp' too, or take it away",
            )
        return None
    if not table.has("lkp"):
        table.refuse("engine", "engine lkp needs a table lkp with src, the directory of lkp-tests")
    return _lkp(table.table("lkp"))


def _lkp(table: _Table) -> LkpEngine:
    made = LkpEngine(
        src=table.text("src"), commit=table.scalar("commit") if table.has("commit") else ""
    )
    if not LKP_SRC.fullmatch(made.src) or "/../" in f"{made.src}/":
        table.refuse(
            "src",
            f"src is {made.src!r}, must be the absolute path of an lkp-tests directory, of letters, digits and '/', '.', '_', '-', '+'",
        )
    if made.commit and not COMMIT.fullmatch(made.commit):
        table.refuse("commit", f"commit is {made.commit!r}, must be 7 to 40 hex digits")
    table.done()
    return made


def _command(table: _Table) -> CommandDriver:
    argv = table.take("argv")
    if not isinstance(argv, list) or not argv or not all(isinstance(word, str) for word in argv):
        table.refuse("argv", "argv must be a list of at least one word, all strings")
    table.done()
    return CommandDriver(argv=tuple(argv))


class _Table:
    """A YAML mapping that knows the line of each key and which keys were asked for."""

    def __init__(
        self,
        file_name: str,
        line: int,
        values: Mapping[str, Any],
        lines: Mapping[str, int],
        nested: Mapping[str, _Table],
        written: Mapping[str, str],
    ) -> None:
        self._file, self._line, self._written = file_name, line, dict(written)
        self._values, self._lines, self._nested = dict(values), dict(lines), dict(nested)
        self._asked: set[str] = set()

    @classmethod
    def parse(cls, text: str, file_name: str) -> _Table:
        try:
            root = yaml.compose(text, Loader=yaml.SafeLoader)
            if not isinstance(root, yaml.MappingNode):
                raise TestboxError(
                    f"{file_name}: line 1: a testbox file must be a table of 'key: value' lines"
                )
            return cls._from_node(root, file_name)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            raise TestboxError(
                f"{file_name}: line {mark.line + 1 if mark else 1}: not valid YAML: {getattr(error, 'problem', error)}"
            ) from error

    @classmethod
    def _from_node(cls, node: yaml.MappingNode, file_name: str) -> _Table:
        values: dict[str, Any] = {}
        lines: dict[str, int] = {}
        nested: dict[str, _Table] = {}
        written: dict[str, str] = {}
        loader = yaml.SafeLoader("")
        for key_node, value_node in node.value:
            key, line = str(key_node.value), key_node.start_mark.line + 1
            if key in lines:
                raise TestboxError(
                    f"{file_name}: line {line}: {key} stands twice, first in line {lines[key]}"
                )
            lines[key] = line
            values[key] = loader.construct_object(value_node, deep=True)
            if isinstance(value_node, yaml.ScalarNode):
                written[key] = str(value_node.value)
            if isinstance(value_node, yaml.MappingNode):
                nested[key] = cls._from_node(value_node, file_name)
        return cls(file_name, node.start_mark.line + 1, values, lines, nested, written)

    def has(self, key: str) -> bool:
        return key in self._values

    def names(self) -> list[str]:
        return list(self._values)

    def scalar(self, key: str) -> str:
        """A plain value as it was written: `off` is a word here, whatever YAML takes it for."""
        self.take(key)
        if key not in self._written:
            self.refuse(key, f"{key} must be a plain value")
        return self._written[key]

    def take(self, key: str, default: Any = None) -> Any:
        self._asked.add(key)
        if key not in self._values:
            if default is None:
                raise TestboxError(f"{self._file}: line {self._line}: {key} is missing")
            return default
        return self._values[key]

    def table(self, key: str) -> _Table:
        self.take(key)
        if key not in self._nested:
            self.refuse(key, f"{key} must be a table")
        return self._nested[key]

    def text(self, key: str, default: str | None = None) -> str:
        value = self.take(key, default)
        if not isinstance(value, str):
            self.refuse(key, f"{key} is {value!r}, must be text")
        return value

    def whole(self, key: str, default: int | None = None, at_least: int = 0) -> int:
        value = self.take(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < at_least:
            self.refuse(key, f"{key} is {value!r}, must be a whole number of at least {at_least}")
        return int(value)

    def number(self, key: str, default: float) -> float:
        value = self.take(key, default)
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1e6:
            self.refuse(key, f"{key} is {value!r}, must be a number above 0")
        return float(value)

    def truth(self, key: str, default: bool) -> bool:
        value = self.take(key, default)
        if not isinstance(value, bool):
            self.refuse(key, f"{key} is {value!r}, must be true or false")
        return bool(value)

    def refuse(self, key: str, why: str) -> NoReturn:
        """Raise TestboxError for `key`, with its line."""
        raise TestboxError(f"{self._file}: line {self._lines.get(key, self._line)}: {why}")

    def done(self) -> None:
        """Refuse keys that nobody asked for."""
        for key in self._values:
            if key not in self._asked:
                self.refuse(
                    key, f"key {key!r} is unknown here; known are {', '.join(sorted(self._asked))}"
                )
