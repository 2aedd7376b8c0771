"""Times of test files: kept from the last runs, printed at the end of one, longest file first.

    python -m tests.times        # after `make test`: write them to tests/times.tsv

A run with `--junitxml=build/times/STAGE.xml` keeps its own; tests/times.tsv has those of a fresh
clone. Processor time is that of the test process and of the children it has waited for.
"""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

KEPT: Final = Path("build/times")
TABLE: Final = Path(__file__).with_suffix(".tsv")
_PROPERTY: Final = "cpu_seconds"
_SHOWN: Final = 5  # files at the end of a run
_SHORTEST: Final = 1.0  # seconds; shorter files are not in the table


@dataclass
class Cost:
    """Seconds of a clock, and of processors."""

    wall: float = 0.0
    cpu: float = 0.0


class Times:
    """A pytest plugin: measures tests, and lets workers of xdist begin with the longest file."""

    def __init__(self, config: pytest.Config) -> None:
        given = getattr(config, "workerinput", {}).get("times")
        self._seconds = given or {file: cost.wall for file, cost in known(config.rootpath).items()}
        self._ordered = given is not None
        self._cpu = 0.0
        self._run: dict[str, Cost] = defaultdict(Cost)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        # all workers must collect in the same order
        node.workerinput["times"] = self._seconds

    @pytest.hookimpl(tryfirst=True)  # an asked-for random order comes later and stays
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self._ordered:
            items.sort(key=lambda item: -self._seconds.get(_file_of(item.nodeid), _SHORTEST))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        self._cpu = processor_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.when == "teardown":  # the last phase: its property is that of the whole test
            report.user_properties.append((_PROPERTY, processor_seconds() - self._cpu))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        cost = self._run[_file_of(report.nodeid)]
        cost.wall += report.duration
        if report.when == "teardown":
            (cpu,) = (value for name, value in report.user_properties if name == _PROPERTY)
            assert isinstance(cpu, float)
            cost.cpu += cpu

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, config: pytest.Config
    ) -> None:
        if not config.getoption("xmlpath"):
            return
        for file, cost in slowest(self._run)[:_SHOWN]:
            terminalreporter.write_line(f"{cost.wall:6.0f} s, {cost.cpu:4.0f} s cpu  {file}")


def processor_seconds() -> float:
    """Of this process and of its ended children."""
    return sum(os.times()[:4])


def _file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def slowest(costs: Mapping[str, Cost]) -> list[tuple[str, Cost]]:
    return sorted(costs.items(), key=lambda item: (-item[1].wall, item[0]))


def known(root: Path) -> dict[str, Cost]:
    """What each file took when it last ran here, or in the table."""
    costs = {}
    for line in TABLE.read_text().splitlines():
        wall, cpu, file = line.split("\t")
        costs[file] = Cost(float(wall), float(cpu))
    kept = sorted((root / KEPT).glob("*.xml"), key=lambda path: path.stat().st_mtime)
    for path in kept:
        costs |= of_junit(path)
    return {file: cost for file, cost in costs.items() if (root / file).exists()}


def of_junit(path: Path) -> dict[str, Cost]:
    """The costs of the files of one run; none if it was killed while it wrote them."""
    costs: dict[str, Cost] = defaultdict(Cost)
    try:
        tree = ET.parse(path)
    except ET.ParseError:
        return {}
    for case in tree.iter("testcase"):
        cost = costs[case.get("classname", "").replace(".", "/") + ".py"]
        cost.wall += float(case.get("time", 0))
        cost.cpu += sum(
            float(one.get("value", 0))
            for one in case.iter("property")
            if one.get("name") == _PROPERTY
        )
    return dict(costs)


def table(costs: Mapping[str, Cost]) -> str:
    return "".join(
        f"{cost.wall:.0f}\t{cost.cpu:.0f}\t{file}\n"
        for file, cost in slowest(costs)
        if cost.wall >= _SHORTEST
    )


if __name__ == "__main__":
    TABLE.write_text(table(known(Path.cwd())))
