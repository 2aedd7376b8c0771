"""The experiments of jobs/experiments: each file reads, and each patch applies to Debian's 6.1."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from swingbot.app.commands.table_kernels import rows_of
from swingbot.app.commands.table_options import Options, read_file
from swingbot.core.patchset.model import SeriesPatch
from tests.builds.test_demo_series import mm  # noqa: F401
from tests.demo import tree
from tests.demo.demo import DemoError
from tests.demo.experiment import EXPERIMENTS, experiment_file
from tests.lab.test_compilers import KERNELS

FILES = sorted(EXPERIMENTS.glob("*.yaml"))
JOBS = EXPERIMENTS.parent
TESTBOXES = JOBS.parent / "workers" / "testboxes"


def stacks(options: Options) -> dict[str, list[SeriesPatch]]:
    """The patches of each row that has some."""
    rows = rows_of(options)
    return {row.name or "series": list(row.series.patches) for row in rows if row.series.patches}


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_a_file_names_what_is_there(file: Path) -> None:
    options = read_file(file)
    assert options.last("base") == "debian"
    assert stacks(options)
    for job in options.texts("job"):
        assert (JOBS / job).is_file()
    for testbox in options.texts("testbox"):
        assert (TESTBOXES / f"{testbox}.yaml").is_file()


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_every_patch_applies_to_the_source(file: Path, mm: Path) -> None:  # noqa: F811
    for name, patches in stacks(read_file(file)).items():
        with tree.with_index(mm, tree.SOURCE_REF) as git:
            before = git.run("write-tree")
            for patch in patches:
                status, said = git.attempt("apply", "--cached", stdin=patch.diff)
                assert status == 0, f"{name}, {patch.subject}: {said}"
                after = git.run("write-tree")
                assert after != before, f"{name}, {patch.subject} changes nothing"
                before = after


def test_the_lab_builds_6_1_with_every_compiler_of_an_experiment() -> None:
    used = {compiler for file in FILES for compiler in read_file(file).texts("compiler")}
    assert used and used <= {compiler for release, compiler, _ in KERNELS if release == "6.1"}


def test_every_patch_belongs_to_an_experiment() -> None:
    there = {path for path in EXPERIMENTS.glob("*/*") if path.is_file()}
    used = set()
    for file in FILES:
        options = read_file(file)
        used |= {
            Path(one)
            for given in options.all("variant", "series")
            for one in given.text.rpartition("=")[2].split(",")
            if Path(one).is_file()
        }
    assert there == used


def test_the_demo_runs_the_cheapest_or_the_one_that_is_named() -> None:
    assert experiment_file("1").name == "hackbench.yaml"
    assert experiment_file("pcp-high").name == "pcp-high.yaml"
    with pytest.raises(DemoError, match="there is no experiment 'nosuch'.*hackbench, inline"):
        experiment_file("nosuch")


def test_the_demo_gives_its_tree_the_job_of_the_experiment() -> None:
    """One job by name, so that boots of the base are also boots of the experiment."""
    for file in FILES:
        assert isinstance(yaml.safe_load(file.read_text())["job"], str)
