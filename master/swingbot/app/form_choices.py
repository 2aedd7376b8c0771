"""What the form of a table offers, from the files of the operator and the database."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from swingbot.core.model.records import JobFile, Tree
from swingbot.core.text.nearest import instead_of
from swingbot.service.ports import Lab, RequestError
from swingbot.service.table.refused_jobs import refused_jobs
from swingbot.service.watch.resolve_jobs import pick_testboxes
from swingbot.web.pages.table_choices import TableChoices
from swingbot_db import read
from swingbot_db.engine import Engine
from swingbot_jobs.language.job_files import read_all


def form_choices(
    lab: Lab,
    engine: Engine,
    jobs: Path,
    chosen: tuple[str, Sequence[str], Sequence[str]],
) -> TableChoices:
    """Return the choices for `chosen`, a tree, testboxes and jobs; "": the first tree."""
    name, testboxes, wanted = chosen
    with lab.transaction("read trees") as tx:
        trees = {tree.name: tree for tree in sorted(tx.trees.all(), key=lambda tree: tree.name)}
    present = sorted(lab.catalogue.testboxes.present)
    files = read_all(jobs)
    tree = trees.get(name) or next(iter(trees.values()), None)
    if tree is None:
        return TableChoices(trees=(), testboxes=present, jobs=list(files))
    problem = ""
    if name and name not in trees:
        problem = f"tree {name!r} does not exist; {instead_of(name, trees)}"
    try:
        on = _testboxes(lab, tree, testboxes)
    except RequestError as error:
        problem = problem or str(error)
        on = []
    given = (JobFile(name=file, text=text) for file, text in files.items())
    refused = refused_jobs(lab.catalogue, tree, on, given)
    offered = [file for file in files if file not in refused]
    for job in wanted:
        if not problem and job not in offered:
            problem = refused.get(job) or (
                f"job file {job[:80]!r} does not exist; {instead_of(job, offered)}"
            )
    with engine.connect() as conn:
        kernels = read.kernel_names(conn, tree.name)
    return TableChoices(
        trees=list(trees),
        testboxes=present,
        jobs=offered,
        tree=tree.name,
        on=on,
        refused=refused,
        kernels=kernels,
        problem=problem,
    )


def _testboxes(lab: Lab, tree: Tree, names: Sequence[str]) -> list[str]:
    """Raises RequestError."""
    return pick_testboxes(
        lab.catalogue.testboxes,
        lab.settings,
        names or tree.testboxes,
        tree.trust,
        asked=bool(names),
    )
