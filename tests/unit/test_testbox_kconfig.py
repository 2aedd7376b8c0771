"""The kernel configuration that a testbox file names."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from swingbot.core.plan.testbox_rules import interchangeable
from swingbot_jobs.contract.kconfig import load_kconfigs
from swingbot_jobs.testbox.definition import remembered
from swingbot_jobs.testbox.file import load, load_all, load_file
from swingbot_jobs.testbox.table import TestboxError
from swingbot_worker.site import Site
from swingbot_worker.testbox.check import check

WORKERS = Path(__file__).parents[2] / "workers"
SERVER = WORKERS / "testboxes" / "examples" / "vm-server.yaml"
KCONFIGS = load_kconfigs(WORKERS / "kconfig")


def a_site(tmp_path: Path, text: str) -> Site:
    workers = tmp_path / "workers"
    for name in ("kconfig", "tuning"):
        shutil.copytree(WORKERS / name, workers / name)
    (workers / "testboxes").mkdir()
    (workers / "testboxes" / "vm-server.yaml").write_text(text)
    return Site(
        cache=tmp_path, workers=workers, jobs=tmp_path / "jobs", benchmarks=None, make_jobs=1
    )


@pytest.mark.parametrize(
    ("own", "tree", "is_"),
    [
        ("", "vm-x86_64+trace", "vm-x86_64+trace"),
        ("server-x86_64", "vm-x86_64", "server-x86_64"),
        ("server-x86_64", "vm-x86_64+trace+quiet", "server-x86_64+trace"),
        ("server-x86_64+trace", "vm-x86_64+align64+trace", "server-x86_64+trace+align64"),
    ],
)
def test_fragments_of_a_tree_come_on_top_of_the_testboxs(own: str, tree: str, is_: str) -> None:
    assert KCONFIGS.on(own, tree) == is_
    KCONFIGS.text(is_)


def test_a_testbox_file_names_a_configuration_that_exists(tmp_path: Path) -> None:
    site = a_site(tmp_path, SERVER.read_text())
    (testbox,) = load_all(site.workers / "testboxes").values()
    assert testbox.kconfig == "server-x86_64" == testbox.to_json()["kconfig"]
    assert remembered(testbox.to_json()).kconfig == ""
    (found,) = (one for one in check(testbox, site) if one.what == "kernel configuration")
    assert (found.ok, found.found) == (True, "server-x86_64")


def test_one_that_does_not_exist_is_said_with_file_and_line(tmp_path: Path) -> None:
    text = SERVER.read_text().replace("kconfig: server-x86_64", "kconfig: server-mips")
    site = a_site(tmp_path, text)
    directory = site.workers / "testboxes"
    with pytest.raises(TestboxError, match=r"vm-server\.yaml:17: there is no .*known are server-"):
        load_all(directory)
    (found,) = (
        one
        for one in check(load_file(directory / SERVER.name), site)
        if one.what == "kernel configuration"
    )
    assert not found.ok and "correct kconfig in the testbox file" in found.do


def test_a_name_that_is_a_path_is_refused() -> None:
    text = SERVER.read_text().replace("kconfig: server-x86_64", "kconfig: ../../etc/passwd")
    with pytest.raises(TestboxError, match="is not a valid kernel configuration name"):
        load(text, SERVER.name)


def test_testboxes_of_different_configurations_do_not_stand_in_for_each_other() -> None:
    one = load(SERVER.read_text(), SERVER.name)
    assert interchangeable(one, one)
    assert not interchangeable(one, load(SERVER.read_text().replace("kconfig:", "# "), SERVER.name))
