"""A use case takes the nouns that it uses: whoever takes a whole opens it at least three times."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

SERVICE: Final = Path(__file__).parents[2] / "master/swingbot/service"
WHOLES: Final = ("Transaction", "Lab")
FEWEST: Final = 3


def faults_in(source: str, whole: str) -> Iterator[str]:
    """Yield each function that takes a `whole`, and each class that has one as a field, and uses
    fewer than three of its nouns.

    To hand the whole on unopened uses none of them.
    """
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.ClassDef):
            yield from _fields(function, whole)
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for parameter in ast.walk(function.args):
            if isinstance(parameter, ast.arg) and _is(parameter.annotation, whole):
                nouns = {
                    use.attr
                    for use in ast.walk(function)
                    if isinstance(use, ast.Attribute)
                    and isinstance(use.value, ast.Name)
                    and use.value.id == parameter.arg
                }
                if len(nouns) < FEWEST:
                    yield f"{function.name} takes {whole} and uses {sorted(nouns)}"


def _fields(owner: ast.ClassDef, whole: str) -> Iterator[str]:
    for field in owner.body:
        if isinstance(field, ast.AnnAssign) and _is(field.annotation, whole):
            held = f"self.{ast.unparse(field.target)}"
            nouns = {
                use.attr
                for use in ast.walk(owner)
                if isinstance(use, ast.Attribute) and ast.unparse(use.value) == held
            }
            if len(nouns) < FEWEST:
                yield f"{owner.name} takes {whole} and uses {sorted(nouns)}"


def _is(annotation: ast.expr | None, whole: str) -> bool:
    if isinstance(annotation, ast.BinOp):
        return _is(annotation.left, whole) or _is(annotation.right, whole)
    return isinstance(annotation, ast.Name) and annotation.id == whole


@pytest.mark.parametrize("whole", WHOLES)
def test_a_use_case_takes_the_nouns_it_uses(whole: str) -> None:
    faults = [
        f"{path.relative_to(SERVICE)}: {fault}"
        for path in SERVICE.rglob("*.py")
        for fault in faults_in(path.read_text(), whole)
    ]
    assert not faults, faults


def test_who_opens_three_nouns_may_take_the_whole() -> None:
    three = "def use(tx: Transaction): tx.orders.open(); tx.boots.find(); see(tx.trees)"
    assert not list(faults_in(three, "Transaction"))


@pytest.mark.parametrize(
    ("source", "nouns"),
    [
        ("def use(tx: Transaction): tx.orders.open(); tx.orders.all()", "['orders']"),
        ("def use(*, tx: Transaction): tx.orders.open(); tx.boots.find()", "['boots', 'orders']"),
        ("def use(tx: Transaction): other(tx)", "[]"),
        ("def use(tx: Transaction | None): pass", "[]"),
        ("class Use:\n def __init__(self, tx: Transaction): self.tx = tx", "[]"),
        ("class Use:\n tx: Transaction\n def use(self): self.tx.orders.open()", "['orders']"),
    ],
)
def test_who_opens_fewer_may_not(source: str, nouns: str) -> None:
    (fault,) = faults_in(source, "Transaction")
    assert fault.endswith(f"uses {nouns}")
