"""Kernel builds: what compiling a variant gave, and what the next one will cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from swingbot.core.model.records import (
    KernelBuild,
)
from swingbot.core.plan.costs import PastBuild


class KernelBuilds(Protocol):
    """Kernel builds: what compiling a variant gave, and what the next one will cost."""

    def by_key(self, build_keys: Iterable[str]) -> dict[str, KernelBuild]:
        """Builds of these keys, by key; a key that was never built is absent."""

    def add(self, attempt: int, outcome: Mapping[str, Any]) -> None:
        """Remember the build that an outcome (jobs/schema) brought. The first one of a build key stays; later calls change nothing."""

    def past(self, kconfig: str, compiler: str, most: int) -> list[PastBuild]:
        """The latest `most` builds of a configuration, oldest first. Simulated ones count too: a lab is simulated as a whole or not at all."""

    def put_forecast(self, build_key: str, seconds: float) -> None:
        """Remember what a build is foreseen to take. It replaces an earlier forecast."""

    def forecasts(self, build_keys: Iterable[str]) -> dict[str, float]:
        """Seconds that these builds were foreseen to take, by key; what was not foreseen is absent."""

    def object_lists(self, build_keys: Iterable[str]) -> dict[str, str]:
        """sha256 of the artifact objects.json of each of these builds that has one, by build key."""

    def any_object_list(self, kconfig: str, compiler: str) -> str | None:
        """sha256 of the artifact objects.json of the latest build of a configuration; None before the first."""

    def stored(self, build_keys: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Builds as `compare_kernels` takes them, by key: build_key, status, image_sha256, files."""
