"""A shell completes what the service has: the same on its host and from elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from swingbot.app.cli import main
from tests.database import fresh
from tests.postgres import Server
from tests.served import Served, served

# Types the words of each line and prints what bash would offer for the last one.
TYPES: Final = r"""
set -u
eval "$(_SWINGBOT_COMPLETE=bash_source swingbot)"
complete -p swingbot | grep -q _swingbot_completion || exit 9
while IFS= read -r line; do
    read -ra COMP_WORDS <<<"$line"
    [[ $line == *' ' ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMPREPLY=()
    _swingbot_completion swingbot
    echo "${COMPREPLY[*]}"
done
"""


@pytest.fixture(scope="module")
def web(pg: Server, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with fresh(pg, template) as url, served(url, tmp_path_factory.mktemp("completion")) as running:
        yield running


@pytest.fixture(params=["on its host", "elsewhere"])
def environment(request: pytest.FixtureRequest, web: Served, tmp_path: Path) -> dict[str, str]:
    if request.param == "elsewhere":
        return {
            "SWINGBOT_URL": f"http://127.0.0.1:{web.port}",
            "XDG_CONFIG_HOME": str(tmp_path),
        }
    return {
        "SWINGBOT_DB_URL": web.settings.db.url,
        "SWINGBOT_PATHS_STATE": str(web.settings.state),
        "SWINGBOT_WEB_PORT": str(web.settings.web.port),
    }


def offered(typed: str, environment: Mapping[str, str]) -> list[str]:
    """What is offered for the last word, by the command in this process."""
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split(" ")) - 1)}
    asked = {**environment, **words, "_SWINGBOT_COMPLETE": "bash_complete"}
    answer = CliRunner().invoke(main, env=asked, prog_name="swingbot")
    assert not answer.stderr
    return [line.partition(",")[2] for line in answer.stdout.splitlines() if line]


def test_bash_completes_ids_and_names(
    environment: dict[str, str], web: Served, tmp_path: Path
) -> None:
    program = tmp_path / "bin" / "swingbot"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nfrom swingbot.app.cli import main\nmain(prog_name='swingbot')\n"
    )
    program.chmod(0o755)
    typed = ["swingbot show i", "swingbot history netperf.T", "swingbot compare base --tree "]
    # as bash splits `--tree=`, `--tree=mm` and an earlier `--set=a=b`
    typed += [f"swingbot compare base {end}" for end in ("--tree =", "--tree = mm")]
    typed += ["swingbot compare --set = a = b base --tree = m"]
    bash = subprocess.run(
        ["bash", "--norc", "-c", TYPES],
        env=os.environ | environment | {"PATH": f"{program.parent}:{os.environ['PATH']}"},
        input="".join(f"{line}\n" for line in typed),
        check=True,
        capture_output=True,
        text=True,
    )
    ids, metrics, trees, *joined = (line.split() for line in bash.stdout.splitlines())
    assert f"i{web.lab.incident}" in ids and all(id.startswith("i") for id in ids)
    assert metrics == ["netperf.Throughput_Mbps"] and trees == offered(typed[2], environment)
    assert len(trees) == len(web.client.get("/trees.json").json())
    assert joined == [trees, *[[name for name in trees if name.startswith("m")]] * 2]
    assert not bash.stderr


def test_each_command_is_offered_what_it_takes(environment: dict[str, str], web: Served) -> None:
    def listed(plural: str, key: str = "id") -> set[str]:
        return {row[key] for row in web.client.get(f"/{plural}.json?limit=500").json()}

    bisections, tables = listed("bisections"), listed("comparisons") | listed("experiments")
    assert set(offered("swingbot bisect skip ", environment)) == bisections
    assert set(offered("swingbot extend ", environment)) == tables
    assert set(offered("swingbot cancel ", environment)) == tables | bisections
    assert set(offered("swingbot report release ", environment)) == listed("reports")
    assert set(offered("swingbot testbox drain ", environment)) == listed("testboxes", "name")
    assert set(offered("swingbot bisect start a..b --metric ", environment)) == listed(
        "metrics", "metric"
    )
    first, *others = sorted(listed("testboxes", "name"))
    several = offered(f"swingbot compare --testbox {first},", environment)
    assert sorted(several) == [f"{first},{name}" for name in others]
    assert "vm-netperf.yaml" in offered("swingbot compare --job vm-n", environment)


def test_a_service_that_is_away_offers_nothing_and_says_nothing(tmp_path: Path) -> None:
    for place in ({"SWINGBOT_URL": "http://127.0.0.1:9"}, {"SWINGBOT_PATHS_STATE": str(tmp_path)}):
        environment = {**place, "XDG_CONFIG_HOME": str(tmp_path)}
        assert offered("swingbot show ", environment) == []
        assert "vm-netperf.yaml" in offered("swingbot compare --job vm-n", environment)
