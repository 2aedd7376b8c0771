"""Result roots (also for existing runs), parser versions, journal of reparsing: see the SQL."""

from __future__ import annotations

from collections import Counter

import sqlalchemy as sa
from alembic import op

from swingbot.core.raw.result_root import ResultRootParts, result_root
from swingbot_db.migrate import run_sql

revision = "0006"
down_revision = "0004"

_RUNS = sa.text(
    """
    SELECT r.id, r.unit_job, coalesce(j.job ->> 'program', split_part(r.unit_job, '-', 1)) AS
      program, t.tbox_group, x.facts ->> 'rootfs' AS rootfs,
           v.kconfig, v.layout, v.compiler, kb.compiler_version, v.commit
    FROM run r JOIN boot x ON x.id = r.boot JOIN testbox t ON t.name = x.testbox
      JOIN orders o ON o.id = x.order_id JOIN variant v ON v.id = o.variant
    JOIN kernel_build kb ON kb.build_key = x.build_key JOIN boot_spec s ON s.sha256 = x.spec
    LEFT JOIN LATERAL (SELECT job FROM jsonb_array_elements(s.unit_jobs) AS e (job)
      WHERE job ->> 'name' = r.unit_job LIMIT 1) j ON true
    ORDER BY r.id
    """
)


def upgrade() -> None:
    run_sql("0006_raw_results.sql")
    conn = op.get_bind()
    roots: dict[str, int] = {}
    numbers: Counter[str] = Counter()
    places = []
    for row in conn.execute(_RUNS):
        fields = dict(row._mapping)
        run = fields.pop("id")
        name = result_root(ResultRootParts(**fields))
        if name not in roots:
            roots[name] = conn.execute(
                sa.text("INSERT INTO result_root (name) VALUES (:name) RETURNING id"),
                {"name": name},
            ).scalar_one()
        places.append({"run": run, "root": roots[name], "number": numbers[name]})
        numbers[name] += 1
    for begin in range(0, len(places), 10_000):
        conn.execute(
            sa.text(
                "UPDATE run SET result_root = p.root, root_run = p.number FROM unnest(CAST(:runs"
                " AS bigint[]), CAST(:roots AS bigint[]),"
                " CAST(:numbers AS integer[])) AS p (run, root, number) WHERE run.id = p.run"
            ),
            {
                f"{key}s": [place[key] for place in places[begin : begin + 10_000]]
                for key in ("run", "root", "number")
            },
        )
