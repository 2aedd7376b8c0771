"""What a request over the web may read: row-level security for the roles that it takes in each of
its transactions (`engine.py`), so no query can forget the filter.

A token limited to testbox groups has swingbot_scoped, which may read the tables in `ROWS` alone, of
each the rows that belong to the groups in the setting `swingbot.groups`. All others but operators
have swingbot_person as soon as a request is private. From both, `PRIVATE` hides what is private to
others than the person in the setting `swingbot.person`. All other roles read as without it: they
own the tables or bypass row-level security (`roles.py`).

PostgreSQL checks a view with the rights of its owner. The views of `db/views/` therefore exist a
second time, in the schema of the role, with those of the caller (`security_invoker`).

A token without levels takes the role swingbot_changes, which may read nothing but the views of
`_CHANGES`: verdicts, and percentages rounded so that no ratio of two counts can be recovered.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa

from swingbot.service.visible import VISIBLE, NotLimited

SCOPED: Final = "swingbot_scoped"
CHANGES: Final = "swingbot_changes"
PERSON: Final = "swingbot_person"
_TAKEN: Final = (SCOPED, CHANGES, PERSON)

_GROUPS: Final = "ANY (current_setting('swingbot.groups')::text[])"
# With the rights of their owner: they see all rows, and say which belong to the groups.
_OWNED: Final = f"""
CREATE OR REPLACE VIEW swingbot_scoped.comparison_in_scope AS
SELECT p.comparison FROM swingbot.comparison_part p JOIN swingbot.testbox t ON t.name = p.testbox
WHERE p.comparison NOT IN (SELECT comparison FROM swingbot.private_comparison)
GROUP BY p.comparison HAVING bool_and(t.tbox_group = {_GROUPS});

CREATE OR REPLACE VIEW swingbot_scoped.bisection_in_scope AS
SELECT b.id FROM swingbot.bisection b JOIN swingbot.testbox t ON t.name = b.testbox
WHERE t.tbox_group = {_GROUPS};

CREATE OR REPLACE VIEW swingbot_scoped.incident_in_scope AS
SELECT i.id FROM swingbot.incident i
WHERE EXISTS (SELECT FROM swingbot.incident_bisection m WHERE m.incident = i.id)
  AND NOT EXISTS (
    SELECT FROM (SELECT m.bisection FROM swingbot.incident_bisection m WHERE m.incident = i.id
      UNION ALL SELECT s.bisection FROM swingbot.sighting s WHERE s.incident = i.id) of
    WHERE NOT EXISTS (SELECT FROM swingbot_scoped.bisection_in_scope b WHERE b.id = of.bisection))
  AND NOT EXISTS (
    SELECT FROM (SELECT i.comparison UNION ALL SELECT i.fix_check
      UNION ALL SELECT s.comparison FROM swingbot.sighting s WHERE s.incident = i.id
      UNION ALL SELECT g.comparison FROM swingbot.incident_gate g WHERE g.incident = i.id) of
    WHERE of.comparison IS NOT NULL AND NOT EXISTS (SELECT FROM
      swingbot_scoped.comparison_in_scope c WHERE c.comparison = of.comparison));

CREATE OR REPLACE VIEW swingbot_scoped.variant_in_scope AS
SELECT a.variant FROM swingbot.comparison_arm a
  JOIN swingbot.comparison_part p ON p.comparison = a.comparison
  JOIN swingbot.testbox t ON t.name = p.testbox WHERE t.tbox_group = {_GROUPS}
UNION ALL
SELECT p.variant FROM swingbot.bisection_point p
  JOIN swingbot_scoped.bisection_in_scope b ON b.id = p.bisection
"""


def _rounded(percent: str) -> str:
    """One decimal and three digits; a fall by all would say that nothing is left."""
    digits = f"least(1, 2 - floor(log(greatest(abs({percent}), 1)::numeric))::int)"
    return f"greatest(round(({percent})::numeric, {digits}), -99.9)::double precision"


# Headline metrics only, because others count events. Unit jobs are numbers, because a name may have
# the number of CPUs. A change from zero has no percentage, and reads as unclear.
_CHANGES: Final = f"""
CREATE VIEW {CHANGES}.changed_row WITH (security_barrier) AS
SELECT r.comparison, r.testbox, r.metric, r.arm, r.reference, r.against,
  dense_rank() OVER (PARTITION BY r.comparison ORDER BY r.unit_job)::int AS test,
  CASE WHEN r.change_pct IS NULL AND r.verdict <> 'invalid' THEN 'unclear' ELSE r.verdict
  END AS verdict,
  {_rounded("r.change_pct")} AS change_pct,
  {_rounded("(r.detail->'interval_pct'->>0)::double precision")} AS low_pct,
  {_rounded("(r.detail->'interval_pct'->>1)::double precision")} AS high_pct
FROM swingbot.comparison_row r
JOIN {SCOPED}.comparison_in_scope s ON s.comparison = r.comparison
WHERE (r.detail->>'headline')::boolean AND r.detail->>'alias_of' IS NULL;

CREATE VIEW {CHANGES}.changed_table WITH (security_barrier) AS
SELECT c.id, c.kind, t.name AS tree, c.status, c.created_at,
  ARRAY(SELECT DISTINCT p.testbox FROM swingbot.comparison_part p WHERE p.comparison = c.id
    ORDER BY p.testbox) AS testboxes,
  (SELECT jsonb_agg(jsonb_build_object('name', a.name, 'commit', v.commit, 'subject', v.subject)
    ORDER BY a.arm) FROM swingbot.comparison_arm a JOIN swingbot.variant v ON v.id = a.variant
    WHERE a.comparison = c.id) AS arms
FROM swingbot.comparison c JOIN swingbot.tree t ON t.id = c.tree
JOIN {SCOPED}.comparison_in_scope s ON s.comparison = c.id
"""

_TESTBOX: Final = "testbox IN (SELECT name FROM swingbot.testbox)"


def _in(table: str, key: str, column: str = "id") -> str:
    """The row that `column` names is one that the role sees."""
    schema = "swingbot_scoped" if table.endswith("_in_scope") else "swingbot"
    return f"EXISTS (SELECT FROM {schema}.{table} seen WHERE seen.{column} = {key})"


def _of(kind: str, *tables: str, key: str = "id") -> dict[str, str]:
    """Rows of the tables that name a visible comparison, bisection or incident."""
    return {table: _in(f"{kind}_in_scope", f"{table}.{kind}", key) for table in tables}


# Rows by table. What is measured on several testboxes is visible if all are in the groups;
# a boot, its runs and samples if its own testbox is.
ROWS: Final = {
    "testbox": f"tbox_group = {_GROUPS}",
    **dict.fromkeys(
        (
            "testbox_now",
            "testbox_event",
            "lease",
            "alert",
            "boot",
            "measured_metric",
            "noise_record",
            "tree_history",
        ),
        _TESTBOX,
    ),
    "worker_compiler": "true",  # how many build kernels, for estimates
    "tree": "testboxes && ARRAY(SELECT name FROM swingbot.testbox)",
    "comparison": _in("comparison_in_scope", "comparison.id", "comparison"),
    **_of(
        "comparison",
        "comparison_arm",
        "comparison_arm_spec",
        "comparison_part",
        "comparison_row",
        "swing",
        key="comparison",
    ),
    "change": _in("comparison", "change.id", "change"),
    "bisection": _in("bisection_in_scope", "bisection.id"),
    **_of(
        "bisection",
        "bisection_point",
        "bisection_want",
        "observation",
        "bisection_step",
        "bisection_steer",
    ),
    "incident": _in("incident_in_scope", "incident.id"),
    **_of(
        "incident", "incident_bisection", "incident_event", "incident_gate", "sighting", "report"
    ),
    "moderation": _in("report", "moderation.report"),
    "outbox": _in("report", "outbox.report"),
    "variant": _in("variant_in_scope", "variant.id", "variant"),
    "kernel_build": _in("variant", "kernel_build.build_key", "build_key"),
    "build_forecast": _in("variant", "build_forecast.build_key", "build_key"),
    "boot_spec": " OR ".join(
        f"sha256 IN (SELECT {column} FROM swingbot.{table})"
        for table, column in (
            ("boot", "spec"),
            ("comparison_part", "spec"),
            ("comparison_arm_spec", "own"),
            ("bisection", "spec"),
        )
    ),
    "orders": f"CASE kind WHEN 'boot' THEN {_TESTBOX}"
    f" ELSE {_in('variant', 'orders.build_key', 'build_key')} END",
    "want": _in("orders", "want.order_id")
    + " AND (comparison IS NULL OR "
    + _in("comparison_in_scope", "want.comparison", "comparison")
    + ") AND (bisection IS NULL OR "
    + _in("bisection_in_scope", "want.bisection")
    + ")",
    "attempt": _in("orders", "attempt.order_id"),
    "dispatch": _in("attempt", "dispatch.attempt"),
    "run": _in("boot", "run.boot"),
    "reparse": _in("run", "reparse.run"),
    "result_root": _in("run", "result_root.id", "result_root"),
    "sample": "measured IN (SELECT id FROM swingbot.measured_metric)",
    "boot_mean": "measured IN (SELECT id FROM swingbot.measured_metric)",
    **{
        table: "CASE WHEN comparison IS NULL"
        f" THEN {_in('bisection_in_scope', f'{table}.bisection')}"
        f" ELSE {_in('comparison_in_scope', f'{table}.comparison', 'comparison')} END"
        for table in ("asked", "result_mail")
    },
}


# What is private by kind: the type of its key. Functions in PL/pgSQL, because each session plans
# their queries once: as part of each policy, these cost more than most pages.
_KEYS: Final = {
    "comparison": "bigint",
    "variant": "bigint",
    "build": "text",
    "order": "bigint",
    "attempt": "bigint",
    "boot": "bigint",
    "run": "bigint",
    "result_root": "bigint",
}
_COLUMNS: Final = {"build": "build_key", "order": "order_id"}  # where it is not the kind


def _function(kind: str, key_type: str) -> str:
    """With the rights of its owner: the keys of what is private (db/views/04_private.sql)."""
    return (
        f"CREATE FUNCTION {SCOPED}.private_{kind}() RETURNS SETOF {key_type} LANGUAGE plpgsql"
        " STABLE SECURITY DEFINER ROWS 10 AS $$ BEGIN RETURN QUERY SELECT"
        f" {_COLUMNS.get(kind, kind)} FROM swingbot.private_{kind}; END $$"
    )


def _public(kind: str, key: str = "") -> str:
    """The column `key` names nothing private of this kind."""
    column = key or _COLUMNS.get(kind, kind)
    return f"({column} IN (SELECT {SCOPED}.private_{kind}())) IS NOT TRUE"


PRIVATE: Final = {
    "comparison": _public("comparison", "id"),
    **dict.fromkeys(
        (
            "comparison_arm",
            "comparison_arm_spec",
            "comparison_part",
            "comparison_row",
            "swing",
            "want",
            "asked",
            "result_mail",
        ),
        _public("comparison"),
    ),
    "variant": _public("variant", "id"),
    **dict.fromkeys(("kernel_build", "build_forecast", "orders"), _public("build")),
    "attempt": _public("order"),
    "dispatch": _public("attempt"),
    "boot": _public("boot", "id"),
    **dict.fromkeys(("run", "boot_mean"), _public("boot")),
    **dict.fromkeys(("reparse", "sample"), _public("run")),
    "result_root": _public("result_root", "id"),
}

# Its comment is the digest of all this; it goes with the tables.
_DIGESTED: Final = f"{SCOPED}.comparison_in_scope"
# The roles exist, with the rights that an upgrade grants them; and this user may take them.
_GRANTED: Final = " AND ".join(
    f"coalesce(has_schema_privilege(to_regrole('{role}'), to_regnamespace('{schema}'), 'USAGE'),"
    " false)"
    for role, schema in ((SCOPED, SCOPED), (CHANGES, CHANGES), (PERSON, SCOPED))
)
_USABLE: Final = " AND ".join(
    (_GRANTED, *(f"pg_has_role(to_regrole('{role}'), 'MEMBER')" for role in _TAKEN))
)
_ANY: Final = "SELECT EXISTS (SELECT FROM swingbot.comparison WHERE private_to IS NOT NULL)"
_MAKE: Final = f"""
DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY{list(_TAKEN)} LOOP
        IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
          AND to_regrole(wanted) IS NULL THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
        END IF;
    END LOOP;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    NULL;  -- another database of this server did it just now
END $$
"""
_FORGET: Final = f"""
DO $$
DECLARE
    found record;
BEGIN
    FOR found IN SELECT tablename AS name, policyname AS policy FROM pg_policies
      WHERE schemaname = 'swingbot' AND policyname IN ('scope', 'person', 'private') LOOP
        EXECUTE format('DROP POLICY %%I ON swingbot.%%I', found.policy, found.name);
    END LOOP;
    DROP SCHEMA IF EXISTS {CHANGES} CASCADE;
    DROP SCHEMA IF EXISTS {SCOPED} CASCADE;
END $$
"""


def limit_rows(conn: sa.Connection, views: Sequence[str]) -> None:
    """Limit the roles to the rows and changes above; `views` is the SQL of all views. Part of each
    upgrade.

    Creates missing roles if the user is a superuser. If one is still missing (`swingbot db roles`
    creates them), nothing happens, and tokens limited to groups and private requests are refused.
    Locks no table if nothing has changed.
    """
    conn.exec_driver_sql(_MAKE.replace("%", "%%"))
    functions = [_function(kind, key_type) for kind, key_type in _KEYS.items()]
    comment = f"SELECT obj_description(to_regclass('{_DIGESTED}'), 'pg_class')"
    policies = map(str, (*ROWS.items(), *PRIVATE.items(), *functions))
    digest = hashlib.sha256("\n".join([_OWNED, _CHANGES, *policies, *views]).encode())
    stored = conn.exec_driver_sql(comment).scalar()
    found = ", ".join(f"to_regrole('{role}')" for role in _TAKEN)
    exists = conn.exec_driver_sql(f"SELECT num_nulls({found}) = 0").scalar()
    granted = conn.exec_driver_sql(f"SELECT {_GRANTED}").scalar()
    if not exists or (granted and stored == digest.hexdigest()):
        return
    forget_rows(conn)
    conn.exec_driver_sql(f"CREATE SCHEMA {SCOPED}")
    conn.exec_driver_sql(f"GRANT USAGE ON SCHEMA swingbot, {SCOPED} TO {SCOPED}")
    conn.exec_driver_sql(_OWNED)
    conn.exec_driver_sql(f"COMMENT ON VIEW {_DIGESTED} IS '{digest.hexdigest()}'")
    for table, rows in ROWS.items():
        conn.exec_driver_sql(
            f"ALTER TABLE swingbot.{table} ENABLE ROW LEVEL SECURITY;"
            f"CREATE POLICY scope ON swingbot.{table} FOR SELECT TO {SCOPED} USING ({rows});"
            f"CREATE POLICY person ON swingbot.{table} FOR SELECT TO {PERSON} USING (true);"
            f"GRANT SELECT ON swingbot.{table} TO {SCOPED}"
        )
    for function in functions:
        conn.exec_driver_sql(function)
    for table, rows in PRIVATE.items():
        conn.exec_driver_sql(
            f"CREATE POLICY private ON swingbot.{table} AS RESTRICTIVE FOR SELECT"
            f" TO {SCOPED}, {PERSON} USING ({rows})"
        )
    conn.exec_driver_sql(
        f"""
        GRANT USAGE ON SCHEMA {SCOPED}, swingbot TO {PERSON};
        DO $$
        DECLARE
            found record;
        BEGIN
            FOR found IN SELECT tablename AS name FROM pg_tables WHERE schemaname = 'swingbot' LOOP
                EXECUTE format('GRANT SELECT ON swingbot.%%I TO {PERSON}', found.name);
            END LOOP;
        END $$
        """
    )
    conn.exec_driver_sql(
        f"CREATE SCHEMA {CHANGES}; {_CHANGES}; GRANT USAGE ON SCHEMA {CHANGES} TO {CHANGES};"
        f" GRANT SELECT ON ALL TABLES IN SCHEMA {CHANGES} TO {CHANGES}"
    )
    before = conn.exec_driver_sql("SHOW search_path").scalar()
    conn.exec_driver_sql(f"SET LOCAL search_path = {SCOPED}, swingbot")
    for view in views:
        conn.exec_driver_sql(view.replace("%", "%%"))
    conn.exec_driver_sql(f"SET LOCAL search_path = {before}")
    conn.exec_driver_sql(
        f"""
        DO $$
        DECLARE
            found record;
        BEGIN
            FOR found IN SELECT viewname AS name FROM pg_views WHERE schemaname = '{SCOPED}' LOOP
                IF found.name NOT LIKE '%%\\_in\\_scope' THEN
                    EXECUTE format('ALTER VIEW {SCOPED}.%%I SET (security_invoker = true)',
                      found.name);
                END IF;
                EXECUTE format('GRANT SELECT ON {SCOPED}.%%I TO {SCOPED}, {PERSON}', found.name);
            END LOOP;
        END $$
        """
    )


def forget_rows(conn: sa.Connection) -> None:
    """Drop the views and policies of the roles: they keep migrations from changing what they read,
    and a view cannot replace one with other columns.
    """
    conn.exec_driver_sql(_FORGET)


def can_limit(conn: sa.Connection) -> bool:
    """Whether this user may take the roles, and these have their views."""
    return bool(conn.exec_driver_sql(f"SELECT {_USABLE}").scalar())


def take_role(conn: sa.Connection) -> None:
    """Limit a transaction that has begun in a request to what its person may see.

    Raises NotLimited.
    """
    visible = VISIBLE.get()
    if visible is None or (visible.groups is None and not conn.exec_driver_sql(_ANY).scalar()):
        return
    if not can_limit(conn):
        raise NotLimited
    path, role = f"{SCOPED}, swingbot", PERSON
    if visible.groups is not None:
        path, role = (path, SCOPED) if visible.levels else (CHANGES, CHANGES)
    conn.execute(
        sa.text(
            "SELECT set_config('swingbot.groups', CAST(CAST(:groups AS text[]) AS text), true),"
            " set_config('swingbot.person', :person, true),"
            " set_config('search_path', :path, true),"
            " set_config('row_security', 'on', true),"
            " set_config('role', :role, true)"
        ),
        {
            "groups": list(visible.groups or ()),
            "person": visible.person or "",
            "path": path,
            "role": role,
        },
    )
