"""One name for one thing: names of classes and modules, and the word for the machines measured."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path, PurePath
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
ROOTS: Final = (
    "jobs/swingbot_jobs",
    "master/swingbot",
    "workers/swingbot_worker",
    "db/swingbot_db",
)
PORTS, STORE = "swingbot.service.ports", "swingbot_db.store"

# Within one of these layers a module name occurs once. Between them it may repeat: what the layer
# does to a subject is said by the layer's own name. A module belongs to the longest entry that its
# package starts with.
LAYERS: Final = {
    "swingbot_jobs": "what master and workers both know of a subject",
    "swingbot.core": "decisions about a subject",
    "swingbot.core.bisect": "the engine of bisections",
    "swingbot.core.incident": "the subject is an incident",
    "swingbot.core.patchset": "the subject is a set of patches",
    "swingbot.core.plan": "what to do next about a subject",
    "swingbot.core.report": "how a subject is written",
    "swingbot.core.reproduce": "what a kit says of a subject",
    "swingbot.core.table": "a subject as a part of a table",
    "swingbot.service": "use cases, named by their verb or noun",
    "swingbot.service.bisect": "use cases of a bisection, the same verbs as of a comparison",
    "swingbot.service.ports": "what the use cases need of a subject",
    "swingbot.adapters": "a subject in the terms of another program",
    "swingbot.web": "pages and routes of a subject",
    "swingbot.app": "how the parts are put together",
    "swingbot.app.bisect_run": "a service of its own, for one person's machine",
    "swingbot.app.commands": "the command line of a subject",
    "swingbot.app.keep": "the operator's tools, which run without the service",
    "swingbot_db": "the database as a whole",
    "swingbot_db.store": "how the port of the same name is stored",
    "swingbot_worker": "what a worker does",
    "swingbot_worker.executor": "the process of one order",
    "swingbot_worker.kbuild": "the steps of building a program, for a kernel",
    "swingbot_worker.testbox": "what all drivers have in common",
    "swingbot_worker.testbox.cluster": "the parts of a driver",
    "swingbot_worker.testbox.qemu": "the parts of a driver",
    "swingbot_worker.testbox.ssh": "the parts of a driver",
    "swingbot_worker.walls": "what confines a process",
}


def package_of(path: PurePath) -> str:
    """Dotted name of the package that contains a module or, for `__init__.py`, a package."""
    inner = path.parts[1:-1]
    return ".".join(inner[:-1] if path.name == "__init__.py" else inner)


@cache
def modules() -> tuple[PurePath, ...]:
    return tuple(
        path.relative_to(ROOT) for root in ROOTS for path in sorted((ROOT / root).rglob("*.py"))
    )


@cache
def text_of(path: PurePath) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def is_pair(places: list[PurePath]) -> bool:
    """Whether a class occurs as a port and as its implementation, in modules of equal name."""
    alike = len({path.name for path in places}) == 1
    return alike and sorted(map(package_of, places)) == sorted((PORTS, STORE))


def test_a_class_name_occurs_once() -> None:
    places = defaultdict[str, list[PurePath]](list)
    for path in modules():
        if path.parent.name == "model" and path.name.endswith("documents.py"):
            continue  # the JSON document of a noun bears its name
        for name in re.findall(r"^class (\w+)", text_of(path), re.M):
            places[name].append(path)
    assert sum(map(is_pair, places.values())) > 20
    repeated = {
        name: list(map(str, paths))
        for name, paths in places.items()
        if len(paths) > 1 and not is_pair(paths)
    }
    assert repeated == {}


def repeated_modules(layers: Collection[str]) -> dict[tuple[str, str], list[str]]:
    """(layer, module name) -> the modules, where there are several."""
    places = defaultdict[tuple[str, str], list[str]](list)
    for path in modules():
        package = package_of(path)
        if path.stem != "__main__" and package:
            around = [layer for layer in layers if f"{package}.".startswith(f"{layer}.")]
            name = path.parent.name if path.stem == "__init__" else path.stem
            places[max(around, key=len, default=""), name].append(str(path))
    return {key: paths for key, paths in places.items() if len(paths) > 1}


def test_a_module_name_occurs_once_in_a_layer() -> None:
    assert repeated_modules(LAYERS) == {}


def inner_layers() -> list[str]:
    return [layer for layer in LAYERS if any(layer.startswith(f"{other}.") for other in LAYERS)]


@pytest.mark.parametrize("layer", inner_layers())
def test_a_layer_within_another_is_listed_because_names_repeat(layer: str) -> None:
    assert repeated_modules(LAYERS.keys() - {layer}) != {}


def identifiers(path: PurePath) -> Iterator[tuple[str, ast.AST]]:
    """Those of a file that may have the word; only few have it, in comments or texts too."""
    text = text_of(path)
    if not any(map(has_the_word, set(re.findall(r"\w*box\w*", text, re.IGNORECASE)))):
        return
    for node in ast.walk(ast.parse(text)):
        for name in ("id", "attr", "arg", "name", "asname"):
            if isinstance(value := getattr(node, name, None), str):
                yield value, node


def has_the_word(identifier: str) -> bool:
    """Whether one of the words in an identifier is "box" or "boxes".

    Words are apart by `_`, a digit, or a capital letter after a small one.
    """
    words = re.split(r"[_.\d]+|(?<=[a-z])(?=[A-Z])", identifier)
    return any(word.lower() in ("box", "boxes") for word in words)


@pytest.mark.parametrize(
    ("identifier", "says"),
    [
        ("box", True),
        ("add_boxes", True),
        ("StubBox", True),
        ("box1", True),
        ("ONE_BOX", True),
        ("testboxes", False),
        ("mailbox", False),
        ("tbox_group", False),
        ("Sandbox", False),
        ("viewBox", True),
    ],
)
def test_words_of_an_identifier(identifier: str, says: bool) -> None:
    assert has_the_word(identifier) == says


def test_the_machine_that_is_measured_is_called_a_testbox() -> None:
    found = [
        f"{path}:{getattr(node, 'lineno', 0)}: {name}"
        for path in (*modules(), *others())
        for name, node in identifiers(path)
        if has_the_word(name)
    ]
    assert found == []


def others() -> Iterator[PurePath]:
    """Python files that are not modules of the packages; sample files and goldens are left out."""
    for folder in ("tests", "benchmarks", "ansible", "dashboards", "docker", "jobs/programs"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "samples" not in path.relative_to(ROOT).parts:
                yield path.relative_to(ROOT)
