"""The monitor topdown: which group of metrics it counts, and whose they are on a hybrid CPU."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from swingbot_jobs.reading.result import ParseError
from tests.unit.test_raw_output import monitored

RUN = Path(__file__).parents[2] / "jobs/programs/topdown/run"
# perf stat -a -j -o FILE -M GROUP [--] COMMAND...: knows one group, counts its usual events in
# place of another, as perf 6.1 does.
PERF = """#!/bin/sh
out=$5 group=$7
shift 7
[ "$1" != -- ] || shift
echo '{"event" : "task-clock", "metric-value" : 0.5, "metric-unit" : "CPUs utilized"}' >"$out"
[ "$group" != GROUP ] ||
	echo '{"event" : "e", "metric-value" : 25.0, "metric-unit" : "%  frontend_bound"}' >"$out"
exec "$@"
"""


def ran(out: Path, *command: str, path: str = "") -> tuple[int, str]:
    env = {**os.environ, "sb_out": str(out), "PATH": f"{path}:{os.environ['PATH']}"}
    done = subprocess.run([RUN, *command], env=env, check=False)
    return done.returncode, out.read_text()


@pytest.mark.parametrize("group", ["TopdownL1", "PipelineL1"])
def test_the_group_of_the_cpus_vendor_is_counted(tmp_path: Path, group: str) -> None:
    fake = tmp_path / "bin/perf"
    fake.parent.mkdir()
    fake.write_text(PERF.replace("GROUP", group))
    fake.chmod(0o755)
    status, text = ran(tmp_path / "out", "sh", "-c", "exit 7", path=str(fake.parent))
    assert (status, monitored(tmp_path, "topdown", text)) == (7, {"frontend_bound": 25.0})


def test_a_machine_without_counters_has_none_and_runs_the_command(tmp_path: Path) -> None:
    if Path("/sys/bus/event_source/devices/cpu").exists():
        pytest.skip("this machine has a PMU")
    status, text = ran(tmp_path / "out", "sh", "-c", "exit 7")
    assert (status, sorted(one.name for one in tmp_path.iterdir())) == (7, ["out"])
    with pytest.raises(ParseError, match="the machine has none"):
        monitored(tmp_path, "topdown", text)


@pytest.mark.parametrize(
    ("events", "why"),
    [
        (("e", "f"), "gives the metric 'retiring' twice"),
        (("cpu_core/e/", "cpu_core/f/"), "gives the metric 'cpu_core.retiring' twice"),
        (("cpu_core/e/", "f"), "names the PMU of some top-down metrics and not of others"),
    ],
)
def test_a_metric_that_could_be_of_either_kind_of_core_is_refused(
    tmp_path: Path, events: tuple[str, str], why: str
) -> None:
    row = '{{"event" : "{}", "metric-value" : "20.000000", "metric-unit" : "%  tma_retiring"}}\n'
    with pytest.raises(ParseError, match=why):
        monitored(tmp_path, "topdown", "".join(row.format(event) for event in events))
