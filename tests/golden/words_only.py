"""`python -m tests.golden.words_only REV`: did only words change in the goldens since REV?

Sentences may be reworded. What carries a fact may not move: numbers, ids, metric and file names,
verdicts, keys of documents, the code of scripts, and the order of rows.
Exit status: 0 only words changed, 1 a fact did.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parents[2]
GOLDENS: Final = "tests/golden"
# `same` is a verdict only where it stands alone: in a sentence it is a word ("at the same time").
VERDICTS: Final = frozenset(("worse", "better", "changed", "unclear", "invalid"))
ALONE: Final = frozenset(("same",))
# A word is letters alone, with an apostrophe or hyphen inside; anything else is a fact.
_WORD: Final = re.compile(r"[A-Za-z]+(?:['-][A-Za-z]+)*")
_AROUND: Final = "()[]{}<>.,;:!?\"'`*|"
# A comment starts at a `#` that begins a word; where the line goes on, a backslash ends it.
_COMMENT: Final = re.compile(r"(?:^|\s)#(?!!)(?:\s|$)")


def facts(text: str) -> list[str]:
    """The tokens of a text that a rewording must keep, in order."""
    tokens = (token.strip(_AROUND) for token in text.split())
    return [
        token for token in tokens if token in VERDICTS or (token and not _WORD.fullmatch(token))
    ]


def script_facts(text: str) -> list[str]:
    """Every token of a shell script's code, and the facts of its comments, wherever lines break."""
    tokens: list[str] = []
    for line in text.splitlines():
        code, _, comment = _COMMENT.sub("\0", line, count=1).partition("\0")
        tokens += [token for token in code.split() if token != "\\"] + facts(comment)
    return tokens


def document_facts(value: Any) -> Iterator[str]:
    """The same of a JSON or YAML document: its keys, its values but for words in strings."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"{key}:"
            yield from document_facts(item)
    elif isinstance(value, list):
        yield "["
        for item in value:
            yield from document_facts(item)
        yield "]"
    elif isinstance(value, str):
        yield from [value] if value in ALONE else facts(value)
    else:
        yield repr(value)


def golden_facts(name: str, content: str) -> list[str]:
    """The facts of one golden; files of JSON lines, JSON and YAML are read as documents."""
    if name.endswith((".yaml", ".json")):
        return list(document_facts(yaml.safe_load(content)))
    if name.endswith((".jsonl", ".log")):
        lines = (line for line in content.splitlines() if line.startswith("{"))
        return [fact for line in lines for fact in document_facts(json.loads(line))]
    if name.endswith(".sh"):
        return script_facts(content)
    return facts(content)


def moved(name: str, before: str, now: str) -> str:
    """The first fact that differs, in a sentence; empty where only words did."""
    pairs = zip_longest(golden_facts(name, before), golden_facts(name, now))
    for number, (old, new) in enumerate(pairs, 1):
        if old != new:
            return f"{name}: fact {number} was {old!r} and is {new!r}"
    return ""


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", "-C", str(ROOT), *words], check=True, capture_output=True, text=True
    ).stdout


def main(argv: list[str]) -> int:
    if len(argv) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        _git("rev-parse", "--verify", "--quiet", f"{argv[0]}^{{commit}}")
    except subprocess.CalledProcessError:
        print(f"{argv[0]!r} is not a commit of this repository", file=sys.stderr)
        return 2
    problems = []
    changed = _changed(argv[0])
    for status, name in changed:
        if status == "A":
            print(f"{name}: new, nothing to compare with")
            continue
        if status != "M":
            problems.append(f"{name}: deleted")
            continue
        before, now = _git("show", f"{argv[0]}:{name}"), (ROOT / name).read_text()
        if problem := moved(name, before, now):
            problems.append(problem)
        else:
            print(f"{name}: {len(golden_facts(name, now))} facts, none moved")
    print("\n".join([*problems, f"{len(changed)} goldens changed, {len(problems)} in a fact"]))
    return 1 if problems else 0


def _changed(revision: str) -> list[tuple[str, str]]:
    """Status and name of each golden that differs from `revision`; modules are not goldens."""
    lines = _git("diff", "--name-status", "--no-renames", revision, "--", GOLDENS).splitlines()
    pairs = [(line.split("\t")[0], line.split("\t")[1]) for line in lines]
    return [(status, name) for status, name in pairs if not name.endswith(".py")]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
