"""Wrap coroutines for Buildbot 4.3.0, whose plugin methods must return Deferreds, because it yields
their results.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from twisted.internet import defer

P = ParamSpec("P")
T = TypeVar("T")


def deferred(method: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, defer.Deferred[T]]:
    """Turn an `async def` method into one that returns a Deferred."""

    @wraps(method)
    def start(*args: P.args, **kwargs: P.kwargs) -> defer.Deferred[T]:
        return defer.Deferred.fromCoroutine(method(*args, **kwargs))

    return start
