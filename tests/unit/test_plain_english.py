"""Words that mark a sentence as translated: a floor under the prose of the tree, not its aim."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
# Records of what programs printed, names and versions of packages, a licence's own words.
_NOT_PROSE: Final = re.compile(
    r"^tests/golden/|/samples/|^requirements\.lock$|^LICENSE$|^tests/unit/test_plain_english\.py$"
)
_WORDS: Final = {
    "is no WORD": (r"(?<!\bthere )\b(?:is|are) no (?!longer\b)[a-z]", 25),
    "told": (r"\btold\b", 60),
    "nobody": (r"\bnobody\b", 20),
    "anew": (r"\banew\b", 5),
    "of ours": (r"\bof ours\b", 5),
}


def prose() -> dict[str, str]:
    """Every tracked text file by its name."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z"], check=True, capture_output=True, text=True
    ).stdout.split("\0")
    texts = {}
    for name in listed:
        path = ROOT / name
        if name and not _NOT_PROSE.search(name) and path.is_file():
            data = path.read_bytes()
            if b"\0" not in data:
                texts[name] = data.decode("utf-8", "replace")
    return texts


@pytest.mark.parametrize("word", _WORDS)
def test_the_tree_keeps_below_the_ceiling_of_a_word(word: str) -> None:
    pattern, ceiling = _WORDS[word]
    counts = {name: len(re.findall(pattern, text, re.I)) for name, text in prose().items()}
    worst = sorted(((count, name) for name, count in counts.items() if count), reverse=True)[:15]
    total = sum(counts.values())
    assert total <= ceiling, f"{word}: {total} times, at most {ceiling}: {worst}"
