"""An experiment with everything its tables show, for pages and the command line."""

from __future__ import annotations

from swingbot.core.report.experiment.experiment_sheet import ExperimentSheet, sheet_of_experiment
from swingbot.core.report.experiment.supplements import SupplementSources, beside, patterns
from swingbot.service.kernel.compare import NoRecord, record_of
from swingbot_jobs.kernel_diff import KernelRecord

from ..ports import Connection, OpenArtifact, ReadModels, Row


def sheet_with_beside(
    read: ReadModels,
    open_artifact: OpenArtifact,
    conn: Connection,
    experiment: Row,
    *,
    every_run: bool = False,
) -> ExperimentSheet:
    """Build the sheet of `experiment`, a document of `read.experiment`.

    `every_run`: include the values of all runs of its benchmarks.
    """
    columns = experiment["beside"]
    metrics = patterns(columns)
    if every_run:
        metrics += [row["metric"] for row in experiment["rows"] if not row["counter"]]
    samples = read.samples_of_experiment(conn, experiment["id"], metrics) if metrics else []
    rule = experiment["against"][0]
    pairs = {
        (row["reference"], row["arm"]): None
        for row in experiment["rows"]
        if row["against"] == rule and row["headline"]
    }
    sources = SupplementSources(
        names=[arm["name"] for arm in experiment["arms"]],
        samples=samples,
        records=_records(read, open_artifact, conn, experiment) if "size" in columns else {},
        references=sorted(pairs, key=lambda pair: pair[1]),
    )
    return sheet_of_experiment(experiment, samples, beside(columns, sources))


def _records(
    read: ReadModels, open_artifact: OpenArtifact, conn: Connection, experiment: Row
) -> dict[int, KernelRecord]:
    """Map each row to its build's code record; identical builds share one."""
    keys = {arm["arm"]: arm["variant"]["build_key"] for arm in experiment["arms"]}
    builds = read.kernel_builds(conn, list(keys.values()))
    records: dict[str, KernelRecord] = {}
    for key in dict.fromkeys(keys.values()):
        try:
            if key in builds:
                records[key] = record_of(open_artifact, builds[key])
        except NoRecord:
            continue
    return {arm: records[key] for arm, key in keys.items() if key in records}
