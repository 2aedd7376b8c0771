"""Kernel builds: results of past builds and forecasts of future ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from swingbot.core.model.outcome import Outcome
from swingbot.core.model.records import (
    KernelBuild,
)
from swingbot.core.plan.costs import PastBuild


class KernelBuilds(Protocol):
    """Kernel builds: results of past builds and forecasts of future ones."""

    def by_key(self, build_keys: Iterable[str]) -> dict[str, KernelBuild]:
        """Return the builds with these keys, by key; keys that were never built are absent."""

    def add(self, attempt: int, outcome: Outcome) -> None:
        """Store the kernel of an outcome.

        The first build of a key stays; later calls change nothing.
        """

    def past(self, kconfig: str, compiler: str, most: int) -> list[PastBuild]:
        """Return the latest `most` builds of a configuration, oldest first.

        Simulated ones count too: a lab is simulated as a whole or not at all.
        """

    def put_forecasts(self, seconds: Mapping[str, float]) -> None:
        """Store the forecast of each build key in seconds. It replaces an earlier forecast."""

    def forecasts(self, build_keys: Iterable[str]) -> dict[str, float]:
        """Return the forecast seconds of these builds, by key; keys without a forecast are
        absent.
        """

    def object_lists(self, build_keys: Iterable[str]) -> dict[str, str]:
        """Return the sha256 of the artifact objects.json of each of these builds that has one, by
        build key.
        """

    def any_object_list(self, kconfig: str, compiler: str) -> str | None:
        """Return the sha256 of the artifact objects.json of the latest build of a configuration;
        None before the first.
        """

    def stored(self, build_keys: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Return builds as the input of `compare_kernels`, by key: build_key, status, image_sha256,
        files.
        """
