"""Which job files the testboxes of a tree can run, and why not the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from swingbot.core.model.records import JobFile, Tree
from swingbot.service.kernel.variants import on_testbox
from swingbot.service.ports import Catalogue, RequestError
from swingbot.service.watch.resolve_jobs import check_parts, refuse_lacking


def refused_jobs(
    catalogue: Catalogue, tree: Tree, testboxes: Sequence[str], files: Iterable[JobFile]
) -> dict[str, str]:
    """Return the files that a table of kernels of `tree` on all of `testboxes` cannot have, with
    the reason: the one that its request would be refused with.
    """
    refused = {}
    for file in files:
        try:
            _check(catalogue, tree, testboxes, file)
        except RequestError as error:
            refused[file.name] = str(error)
    return refused


def _check(catalogue: Catalogue, tree: Tree, testboxes: Sequence[str], file: JobFile) -> None:
    """Raises RequestError."""
    for name in testboxes:
        kconfig = on_testbox(catalogue.kconfigs, tree, catalogue.testboxes.known(name)).kconfig
        [(_, unit_jobs)] = check_parts(
            catalogue.programs, catalogue.testboxes, [file], [name], {}, tree.trust
        )
        refuse_lacking(catalogue, kconfig, unit_jobs)
