"""The sentence about an id that does not exist."""

from __future__ import annotations

import click

from swingbot.app.commands import inspection
from swingbot.core.model.lookup import LISTED, missing


def test_it_names_the_object_and_the_list_of_its_kind() -> None:
    assert missing("experiment", 9) == (
        "experiment e9 does not exist; `swingbot list experiments` lists all experiments"
    )
    assert missing("boot", 9) == "boot x9 does not exist"


def test_every_list_that_it_names_exists() -> None:
    kind = next(param for param in inspection.list_.params if param.name == "kind")
    assert isinstance(kind.type, click.Choice)
    assert {f"{name}s" for name in LISTED} <= set(kind.type.choices)
