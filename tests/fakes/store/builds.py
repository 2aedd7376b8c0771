"""Kernel builds in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from swingbot.core.model.outcome import Outcome
from swingbot.core.model.records import KernelBuild, Variant
from swingbot.core.plan.costs import PastBuild
from swingbot_jobs.contract.orders import BuildStatus
from tests.fakes.store.tables import BuildRow, Noun


class KernelBuilds(Noun):
    def by_key(self, build_keys: Iterable[str]) -> dict[str, KernelBuild]:
        return {key: self.db.builds[key].build for key in set(build_keys) if key in self.db.builds}

    def add(self, attempt: int, outcome: Outcome) -> None:
        kernel, files = outcome.kernel, outcome.files
        assert kernel is not None
        errors = kernel.errors or ([outcome.reason] if outcome.reason else ())
        row = BuildRow(
            build=KernelBuild(
                build_key=kernel.build_key,
                status=cast(BuildStatus, outcome.status),
                image_sha256=kernel.image_sha256 if outcome.status == "built" else None,
                errors=tuple(errors),
                seconds=outcome.seconds,
                cached=kernel.cached,
                compiler_version=kernel.compiler_version,
                config_sha256=files.get("config", {}).get("sha256"),
            ),
            files=files,
            attempt=attempt,
            built_at=self.db.begun,
        )
        self.db.builds.setdefault(kernel.build_key, row)

    def past(self, kconfig: str, compiler: str, most: int) -> list[PastBuild]:
        found = []
        for row in self._latest(kconfig, compiler)[:most]:
            variant, outcome = self._variant(row), self.db.attempts[row.attempt].outcome
            found.append(
                PastBuild(
                    commit=variant.commit,
                    layout=variant.layout,
                    built=row.build.status == "built",
                    cached=row.build.cached,
                    seconds=row.build.seconds,
                    worker=(outcome or {}).get("worker"),
                )
            )
        return found[::-1]

    def _variant(self, row: BuildRow) -> Variant:
        order = self.db.orders[self.db.attempts[row.attempt].order].order
        return self.db.variants[order.variant]

    def _latest(self, kconfig: str, compiler: str) -> list[BuildRow]:
        rows = sorted(
            self.db.builds.values(), key=lambda row: (row.built_at, row.attempt), reverse=True
        )
        return [
            row
            for row in rows
            if (self._variant(row).kconfig, self._variant(row).compiler) == (kconfig, compiler)
        ]

    def put_forecasts(self, seconds: Mapping[str, float]) -> None:
        self.db.forecasts.update(seconds)

    def forecasts(self, build_keys: Iterable[str]) -> dict[str, float]:
        return {key: self.db.forecasts[key] for key in build_keys if key in self.db.forecasts}

    def object_lists(self, build_keys: Iterable[str]) -> dict[str, str]:
        lists = {key: _objects(self.db.builds[key]) for key in build_keys if key in self.db.builds}
        return {key: sha256 for key, sha256 in lists.items() if sha256 is not None}

    def any_object_list(self, kconfig: str, compiler: str) -> str | None:
        lists = (
            _objects(row) for row in self._latest(kconfig, compiler) if row.build.status == "built"
        )
        return next((sha256 for sha256 in lists if sha256 is not None), None)

    def stored(self, build_keys: Iterable[str]) -> dict[str, dict[str, Any]]:
        return {
            key: {
                "build_key": key,
                "status": row.build.status,
                "image_sha256": row.build.image_sha256,
                "files": dict(row.files),
            }
            for key in build_keys
            if (row := self.db.builds.get(key)) is not None
        }


def _objects(row: BuildRow) -> str | None:
    sha256: str | None = row.files.get("objects.json", {}).get("sha256")
    return sha256
