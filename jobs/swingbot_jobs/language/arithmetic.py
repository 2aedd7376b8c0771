"""`{{ nr_cpu / 2 }}`: arithmetic on whole numbers.

The evaluator is our own, because a job file is data and must not run code.

Whole numbers, names, `+ - * / %`, a sign and parentheses.
Division rounds down and a remainder has the divisor's sign, as in LKP's Ruby.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Final

from swingbot_jobs import limits

_OPERATORS: Final[dict[type[ast.operator], Callable[[int, int], int]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def calculate(source: str, lookup: Callable[[str], int]) -> int:
    """Return the value of an expression; `lookup` resolves names.

    Raises ValueError, whose message completes a sentence, and the errors of `lookup`.
    """
    if len(source) > limits.EXPRESSION_CHARACTERS:
        raise ValueError(f"is longer than {limits.EXPRESSION_CHARACTERS} characters")
    try:
        tree = ast.parse(" ".join(source.split()), mode="eval")
        return _value(tree.body, lookup)
    except ZeroDivisionError:
        raise ValueError("divides by 0") from None
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError(
            "only whole numbers, names, + - * / % and parentheses can be used"
        ) from None


def _value(node: ast.expr, lookup: Callable[[str], int]) -> int:
    match node:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            result = number
        case ast.Name(id=name):
            result = lookup(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            result = -_value(operand, lookup)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            result = _OPERATORS[type(op)](_value(left, lookup), _value(right, lookup))
        case _:
            raise ValueError("only whole numbers, names, + - * / % and parentheses can be used")
    if abs(result) > limits.EXPRESSION_RESULT:
        raise ValueError("becomes too large")
    return result
