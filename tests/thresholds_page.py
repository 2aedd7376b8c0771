"""The numbers of docs/thresholds.md, from the code that has them.

`python -m tests.thresholds_page` prints the page with the sections of both modules made anew.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "thresholds.md"
MODULES: Final = {
    "Deciding and reporting": "master/swingbot/core/thresholds.py",
    "Bisecting": "master/swingbot/core/bisect/thresholds.py",
}
_HEADING: Final = re.compile(r"# --- (.+) ---")
_COLUMNS: Final = 98
_LONGEST_VALUE: Final = 40  # columns; a longer one is in the code alone


def page() -> str:
    """The page: what it says by hand, and the two sections."""
    text = PAGE.read_text()
    for title, module in MODULES.items():
        before, _, after = text.partition(f"\n## {title}\n")
        _, more, rest = after.partition("\n## ")
        numbers = "\n".join(_section(ROOT / module)).strip()
        text = f"{before}\n## {title}\n\n`{module}`:\n\n{numbers}\n{more}{rest}"
    return text


def comments(module: Path) -> Iterator[tuple[str, list[str], str]]:
    """(heading above or "", `name=value` of each number, the comment over them), in order.

    Numbers without a comment of their own share the one before them.
    """
    lines = module.read_text().splitlines()
    heading, group, about = "", list[str](), ""
    last = 0
    for node in _assignments(ast.parse("\n".join(lines))):
        above = [line.strip() for line in lines[last : node.lineno - 1]]
        last = node.end_lineno or node.lineno
        comment = [line for line in above if line.startswith("# ")]
        if comment:
            if group:
                yield heading, group, about
            titles = [match[1] for line in comment if (match := _HEADING.fullmatch(line))]
            heading, group = "".join(titles), []
            words = (line[2:] for line in comment if not re.match(r"# (---|docs/)", line))
            about = " ".join(words)
        group += _values(node)
    yield heading, group, about


def sentences(comment: str) -> list[str]:
    """The first says what a number is, the others what happens when it moves."""
    return re.split(r"(?<=[.)])\s(?=[A-Z0-9])", comment)


def _section(module: Path) -> Iterator[str]:
    """An entry for each heading of the module, with the numbers below it."""
    title, numbers = "the policy of a bisection", list[str]()
    for heading, group, _ in comments(module):
        if heading:
            if numbers:
                yield from bullet(f"{title}: {', '.join(numbers)}")
            title, numbers = re.sub(r" \(.+?\)", "", heading), []
        numbers += group
    yield from bullet(f"{title}: {', '.join(numbers)}")


def _assignments(tree: ast.Module) -> Iterator[ast.Assign | ast.AnnAssign]:
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            yield node
        elif isinstance(node, ast.ClassDef):
            yield from (field for field in node.body if isinstance(field, ast.AnnAssign))


def _values(node: ast.Assign | ast.AnnAssign) -> list[str]:
    """The names with their values as code."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    names = [ast.unparse(target).strip("()") for target in targets]
    value = ast.unparse(node.value) if node.value is not None else ""
    return [f"`{name}={value}`" if len(value) <= _LONGEST_VALUE else f"`{name}`" for name in names]


def bullet(text: str) -> Iterator[str]:
    """One entry of the list, broken at spaces outside of code."""
    line = "-"
    for word in re.findall(r"`[^`]*`\S*|\S+", text):
        if len(line) + 1 + len(word) > _COLUMNS:
            yield line
            line = " "
        line += f" {word}"
    yield line


if __name__ == "__main__":
    print(page(), end="")
