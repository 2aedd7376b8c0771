"""docs/licences.md names everything that we import, with the licence that its distribution
declares."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageMetadata, metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "licences.md").read_text()
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PARTS = ("master", "worker")


def named(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w.-]", requirement)[0] for requirement in requirements}


def imported() -> dict[str, set[str]]:
    """Distribution -> the parts that need it."""
    needs = {part: named(PROJECT["optional-dependencies"][part]) for part in PARTS}
    shared = named(PROJECT["dependencies"])
    return {
        name: {part for part in PARTS if name in needs[part] | shared}
        for name in shared.union(*needs.values())
    }


def declared(found: PackageMetadata) -> set[str]:
    """Every form in which a distribution declares its licence; a whole licence text is left out."""
    texts = {
        text for name in ("License-Expression", "License") for text in found.get_all(name) or []
    }
    classifiers = {
        text.split(" :: ")[-1]
        for text in found.get_all("Classifier") or []
        if text.startswith("License :: ")
    }
    return {text for text in texts if text and "\n" not in text} | classifiers


def test_the_table_names_every_import_with_a_licence_that_it_declares() -> None:
    rows = re.findall(r"^\| ([\w.-]+) \| ([\w, ]+) \| (.+?) \|", PAGE, re.MULTILINE)
    table = {name: (set(parts.split(", ")), licence) for name, parts, licence in rows[1:]}
    assert {name: parts for name, (parts, _) in table.items()} == imported()
    for name, (_, licence) in table.items():
        assert licence in declared(metadata(name)), name


def test_the_licence_of_the_project_is_the_same_everywhere() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert PROJECT["license"] in ("GPL-2.0-or-later", {"text": "GPL-2.0-or-later"})
    assert "GNU GENERAL PUBLIC LICENSE" in text and "Version 2, June 1991" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert "GPL-2.0-or-later" in PAGE
