"""What builds did: for what the next ones will cost, and for what this configuration compiles at all."""

from __future__ import annotations

from collections.abc import Iterable

from swingbot.core.plan.costs import PastBuild
from swingbot_db.store.rows import Rows


class BuildRows(Rows):
    def past_builds(self, kconfig: str, compiler: str, most: int) -> list[PastBuild]:
        """The latest builds of a configuration, oldest first. Simulated ones count too: a lab is simulated as a whole or not at all."""
        rows = self.all(
            "SELECT v.commit, v.layout, b.status = 'built' AS built, b.cached, b.seconds, a.outcome ->> 'worker' AS worker"
            " FROM kernel_build b JOIN attempt a ON a.id = b.attempt JOIN orders o ON o.id = a.order_id JOIN variant v ON v.id = o.variant"
            " WHERE v.kconfig = :kconfig AND v.compiler = :compiler ORDER BY b.built_at DESC, b.attempt DESC LIMIT :most",
            kconfig=kconfig,
            compiler=compiler,
            most=most,
        )
        return [PastBuild(**row._mapping) for row in reversed(rows)]

    def drop_ahead(self, bisection: int, priority: int, kept: Iterable[int]) -> None:
        """Stop wanting builds of at most `priority` that have not begun, other than `kept`; if nobody else wants them they are cancelled."""
        self.do(
            "DELETE FROM want w USING orders o WHERE o.id = w.order_id AND w.bisection = :b AND o.kind = 'build' AND o.priority <= :priority"
            " AND o.state IN ('waiting', 'ready') AND NOT o.id = ANY(:kept)",
            b=bisection,
            priority=priority,
            kept=list(kept),
        )

    def object_lists(self, build_keys: Iterable[str]) -> dict[str, str]:
        """sha256 of the artifact objects.json of each of these builds that has one."""
        rows = self.all(
            "SELECT build_key, files -> 'objects.json' ->> 'sha256' AS sha256 FROM kernel_build"
            " WHERE build_key = ANY(:keys) AND files -> 'objects.json' ->> 'sha256' IS NOT NULL",
            keys=list(build_keys),
        )
        return {row.build_key: row.sha256 for row in rows}

    def any_object_list(self, kconfig: str, compiler: str) -> str | None:
        """sha256 of the artifact objects.json of the latest build of a configuration; None before the first."""
        found = self.value(
            "SELECT b.files -> 'objects.json' ->> 'sha256' FROM kernel_build b JOIN attempt a ON a.id = b.attempt JOIN orders o ON o.id = a.order_id"
            " JOIN variant v ON v.id = o.variant WHERE v.kconfig = :kconfig AND v.compiler = :compiler AND b.status = 'built'"
            " AND b.files -> 'objects.json' ->> 'sha256' IS NOT NULL ORDER BY b.built_at DESC, b.attempt DESC LIMIT 1",
            kconfig=kconfig,
            compiler=compiler,
        )
        return None if found is None else str(found)
