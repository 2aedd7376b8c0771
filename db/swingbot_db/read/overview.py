"""State of the whole lab, and its problems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from swingbot.core.keep.health import LONG_SECONDS
from swingbot.core.model import ids
from swingbot.core.model.documents import LooksFixed
from swingbot.core.model.list_documents import QueueEnd
from swingbot.core.model.statuses import ReportKind, words
from swingbot.core.text.numbers import count
from swingbot.service.visible import NotLimited

from . import testbox_status
from .access import refused_tokens
from .bisections import list_bisections
from .estimate import LabQueue
from .incidents import list_incidents, list_reports, looks_fixed, open_incidents
from .moderation import ERROR, REASON, switch
from .queue_end import end_of_lab
from .rows import ORDER_STATE, Row, rows, shown
from .tables import list_tables
from .trees import list_testboxes, list_trees
from .under_way import under_way

# Results go to their requesters alone.
_OF_EVERYBODY: Final = ",".join(word for word in words(ReportKind) if word != "result")

_QUEUE = f"""
SELECT o.kind, {ORDER_STATE} AS state, count(*) AS orders
FROM orders o WHERE o.state IN ('waiting', 'ready', 'running') GROUP BY 1, 2
"""
_RUNNING = """
SELECT o.id, o.kind, o.testbox, o.k, v.commit, v.subject, t.name AS tree, a.number AS attempt,
  a.created_at AS since,
       extract(epoch FROM now() - a.created_at) AS seconds,
       d.builder, d.state AS dispatch, d.bb_builder, d.bb_number,
       d.attempt IS NOT NULL AND d.bb_number IS NULL AS queued
FROM attempt a JOIN orders o ON o.id = a.order_id JOIN variant v ON v.id = o.variant
  JOIN tree t ON t.id = v.tree
LEFT JOIN dispatch d ON d.attempt = a.id AND d.state <> 'over'
WHERE a.state = 'running' ORDER BY a.id
"""
_SWINGS = """
SELECT s.id, s.comparison, s.testbox, s.unit_job, s.metric, s.direction,
  coalesce(f.change_pct, s.change_pct) AS change_pct, s.state,
  s.source, (s.evidence->>'spread_ratio')::double precision AS spread_ratio,
  s.bisection, c.created_at, t.name AS tree,
       x.facts->>'label' AS label
FROM swing s JOIN comparison c ON c.id = s.comparison JOIN tree t ON t.id = c.tree
  JOIN testbox x ON x.name = s.testbox
  LEFT JOIN v_searches f ON f.root = s.bisection AND f.sole
    AND f.status IN ('culprit', 'credible_set', 'creep')
WHERE s.state <> 'known' ORDER BY s.id DESC LIMIT :limit
"""
# One row an incident (its largest change), or a swing that has none yet; of each direction the
# latest. An incident whose bisection was begun by a person has no swing.
_LATELY = """
WITH of_swing AS (
  SELECT s.id, s.comparison, s.testbox, s.unit_job, s.metric, s.direction, s.change_pct, s.state,
    s.source, s.evidence, s.bisection, c.created_at, t.name AS tree,
    coalesce(i.merged_into, i.id) AS incident
  FROM swing s JOIN comparison c ON c.id = s.comparison JOIN tree t ON t.id = c.tree
  LEFT JOIN (bisection_family b JOIN incident_bisection o ON o.bisection = b.id)
    ON b.root = s.bisection
  LEFT JOIN incident i ON i.id = o.incident LEFT JOIN bisection k ON k.id = s.bisection
  WHERE s.state NOT IN ('known', 'refuted') AND k.status IS DISTINCT FROM 'not_reproduced'
), of_person AS (
  SELECT NULL::bigint AS id, i.comparison, b.testbox, b.unit_job, b.metric,
    CASE WHEN d.better IS NULL THEN 'changed'
      WHEN (f.change_pct > 0) = (d.better = 'higher') THEN 'better' ELSE 'worse' END AS direction,
    f.change_pct, 'explained' AS state, 'base' AS source, '{}'::jsonb AS evidence,
    b.id AS bisection, i.created_at, t.name AS tree, i.id AS incident
  FROM incident i JOIN tree t ON t.id = i.tree JOIN variant v ON v.id = i.culprit
  JOIN incident_bisection o ON o.incident = i.id JOIN bisection b ON b.id = o.bisection
  JOIN v_searches f ON f.search = 'b' || b.id AND f.commits = ARRAY[v.commit]
  LEFT JOIN LATERAL (SELECT detail->>'better' AS better FROM comparison_row
    WHERE (unit_job, metric) = (b.unit_job, b.metric) AND testbox = b.testbox
    ORDER BY comparison DESC LIMIT 1) d ON true
  WHERE i.merged_into IS NULL AND f.change_pct IS NOT NULL
    AND i.id NOT IN (SELECT incident FROM of_swing WHERE incident IS NOT NULL)
), largest AS (
  SELECT DISTINCT ON (incident, CASE WHEN incident IS NULL THEN id END) *,
    CASE WHEN incident IS NULL THEN 0 ELSE count(*) OVER (PARTITION BY incident) - 1 END AS further
  FROM (SELECT * FROM of_swing UNION ALL SELECT * FROM of_person) every
  ORDER BY incident, CASE WHEN incident IS NULL THEN id END, abs(change_pct) DESC, id
), latest AS (
  SELECT *, row_number() OVER (PARTITION BY direction
    ORDER BY created_at DESC, abs(change_pct) DESC, id DESC) AS place
  FROM largest
)
SELECT l.id, coalesce(i.comparison, l.comparison) AS comparison, l.testbox, l.unit_job, l.metric,
  l.direction,
  coalesce(f.change_pct, l.change_pct) AS change_pct, l.state,
  l.source, (l.evidence->>'spread_ratio')::double precision AS spread_ratio,
  l.bisection, l.created_at, l.tree, x.facts->>'label' AS label, l.further AS more, l.incident,
  v.commit AS culprit, v.subject, v.author, m.id AS report, m.state AS report_state
FROM latest l JOIN testbox x ON x.name = l.testbox LEFT JOIN incident i ON i.id = l.incident
LEFT JOIN variant v ON v.id = i.culprit
LEFT JOIN v_searches f ON f.root = l.bisection
  AND CASE WHEN v.id IS NULL THEN f.sole AND f.status IN ('credible_set', 'creep')
      ELSE f.commits = ARRAY[v.commit] END
LEFT JOIN LATERAL (SELECT r.id, r.state FROM report r WHERE r.incident = l.incident
  ORDER BY r.withdrawn IS NOT NULL, r.id LIMIT 1) m ON true
WHERE l.place <= :limit
ORDER BY array_position(ARRAY['worse', 'changed', 'better'], l.direction), l.place
"""
# A kernel that does not build or boot is an outcome; only infrastructure failures are problems.
_FAILED_ORDERS = """
SELECT o.id, o.kind, o.testbox, o.reason FROM orders o
WHERE o.state = 'failed' AND o.ended_at > now() - interval '1 day'
  AND EXISTS (SELECT 1 FROM attempt a WHERE a.order_id = o.id AND (a.state = 'dead'
    OR a.outcome->>'status' = 'infra'))
ORDER BY o.id DESC LIMIT 10
"""
# Each of these boots was repeated. A fault of the machine needs a person.
_INVALID_BOOTS = """
SELECT x.testbox, count(DISTINCT x.id) AS boots, max(x.id) AS last, (array_agg(r.reason
  ORDER BY r.id DESC))[1] AS reason
FROM run r JOIN boot x ON x.id = r.boot WHERE r.status = 'invalid'
  AND x.booted_at > now() - interval '1 day' GROUP BY x.testbox ORDER BY x.testbox
"""
_FAILED_REQUESTS = """
SELECT CASE kind WHEN 'experiment' THEN 'experiment' ELSE 'comparison' END AS kind, id, reason
FROM comparison WHERE status = 'failed' AND ended_at > now() - interval '1 day'
UNION ALL SELECT 'bisection', id, reason FROM bisection WHERE status = 'failed'
  AND ended_at > now() - interval '1 day' ORDER BY 1, 2 DESC LIMIT 10
"""
_STUCK_MAIL = f"""
SELECT r.id, r.state, {REASON}, {ERROR} FROM report r LEFT JOIN outbox o ON o.report = r.id
WHERE r.state IN ('held', 'unknown') OR (r.state IN ('queued', 'sending') AND o.error IS NOT NULL)
ORDER BY r.id DESC LIMIT 10
"""
# Of the service's parts; a backup may take an hour. String literals are hidden: they may contain
# users' data.
_LONG_TRANSACTIONS = """
SELECT application_name AS part, extract(epoch FROM clock_timestamp() - xact_start)::float
  AS seconds, state = 'active' AS active, wait_event_type = 'Lock' AS locked,
  left(regexp_replace(regexp_replace(query, $$'[^']*('|$)$$, '?', 'g'), '\\s+', ' ', 'g'), 160)
  AS statement
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
  AND application_name IN ('swingbot loop', 'swingbot web', 'swingbot buildbot')
  AND xact_start < clock_timestamp() - make_interval(secs => :seconds) ORDER BY xact_start
"""
# A testbox that could take one of its orders at once: it is not screened, no member of a cluster
# works or waits for the others. An order is ready once its kernel is built, and some time after an
# attempt that failed.
_IDLE_TESTBOXES = """
WITH idle AS (
  SELECT x.name, x.facts, n.since FROM testbox x LEFT JOIN testbox_now n ON n.testbox = x.name
  WHERE x.state = 'active' AND coalesce(n.state, 'idle') = 'idle'
    AND (coalesce(n.screening_boots, 0) = 0 OR n.screened_at IS NOT NULL)
    AND NOT EXISTS (SELECT FROM lease l
      WHERE l.testbox = x.name OR coalesce(x.facts -> 'nodes', '[]') ? l.testbox)
    AND NOT EXISTS (SELECT FROM testbox c JOIN orders o ON o.testbox = c.name AND o.state = 'ready'
      WHERE coalesce(c.facts -> 'nodes', '[]') ? x.name)
), beside AS (
  SELECT i.name, o.id, extract(epoch FROM clock_timestamp() - greatest(i.since, o.created_at,
    b.built_at, (SELECT max(ended_at) + interval '2 minutes' FROM attempt WHERE order_id = o.id)
  ))::float AS seconds
  FROM idle i JOIN orders o ON o.testbox = i.name AND o.state = 'ready'
  LEFT JOIN kernel_build b ON b.build_key = o.build_key
)
SELECT name, count(*) AS orders, min(id) AS oldest, max(seconds) AS seconds FROM beside
WHERE seconds >= :seconds GROUP BY name ORDER BY name
"""


_TOTALS = """SELECT (SELECT count(*) FROM kernel_build WHERE NOT cached) AS built, (SELECT count(*)
  FROM kernel_build WHERE cached) AS cached,
  (SELECT count(*) FROM boot) AS boots, (SELECT count(*) FROM run) AS runs"""

# A single statement sees one state of the database. Reports that are draft, held or unknown wait
# for a person, so they are not open.
_OPEN = """
SELECT (SELECT count(*) FROM tree WHERE state = 'watched' AND polled_at IS NULL) AS trees,
  (SELECT count(*) FROM comparison WHERE status IN ('waiting', 'running')) AS comparisons,
  (SELECT count(*) FROM swing WHERE state IN ('suspected', 'open', 'bisecting')) AS swings,
  (SELECT count(*) FROM bisection WHERE status = 'running') AS bisections,
  (SELECT count(*) FROM incident_gate WHERE status = 'running') AS gates,
  (SELECT count(*) FROM orders WHERE state IN ('waiting', 'ready', 'running')) AS orders,
  (SELECT count(*) FROM attempt WHERE state <> 'dead' AND ingested_at IS NULL) AS attempts,
  (SELECT count(*) FROM report WHERE state IN ('queued', 'sending')) AS reports,
  (SELECT count(*) FROM unseen) AS unseen
"""


def open_work(conn: sa.Connection) -> Row:
    """`idle`, and counts of each kind of `open` work, all from one snapshot.

    Idle means that another round of the loop would do nothing; only time, a branch or a person
    brings new work. `trees` were never polled; `attempts` run or are not ingested; `unseen` changes
    were committed after the last complete round began.
    """
    counts = rows(conn, _OPEN)[0]
    return {"idle": not any(counts.values()), "open": counts}


# What /healthz asks: does the database respond, and do swingbot's tables exist?
REACHABLE = (
    "SELECT count(*) AS orders_open FROM orders WHERE state IN ('waiting', 'ready', 'running')"
)


def reachable(conn: sa.Connection) -> Row:
    return rows(conn, REACHABLE)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class _OpenLab:
    """Testboxes, open requests, what is open by kind, and the queue."""

    queue: LabQueue
    testboxes: list[Row]
    requests: Row
    open: Row

    def end(self) -> QueueEnd:
        requests = [*self.requests["open_tables"], *self.requests["open_bisections"]]
        return end_of_lab(self.queue, self.testboxes, requests, self.open["open"]["bisections"])


def _lab(conn: sa.Connection) -> _OpenLab:
    queue = LabQueue.load(conn)
    return _OpenLab(
        queue=queue,
        testboxes=list_testboxes(conn, queue=queue),
        requests=under_way(conn, {}, queue),
        open=open_work(conn),
    )


def queue_end(conn: sa.Connection) -> QueueEnd:
    """When the queue of the lab ends."""
    return _lab(conn).end()


def status(conn: sa.Connection) -> Row:
    """The whole lab at a glance.

    Keys: `idle`, `open`, `queue`, `queue_end`, `running`, `testboxes`, `trees`, open and recent
    requests, `swings`, `lately` (what got worse, then what got better), `reports`, `problems`. A
    problem is {"text": a sentence that says what to do, "link": a page with more, or None}.
    """
    lab = _lab(conn)
    testboxes, requests = lab.testboxes, lab.requests
    trees = list_trees(conn, {"state": "watched"})
    running = [row | {"id": shown("order", row["id"])} for row in rows(conn, _RUNNING)]
    fixed = looks_fixed(conn, open_incidents(conn))
    return {
        "now": rows(conn, "SELECT now() AS now")[0]["now"],
        **lab.open,
        "queue": _queue(conn),
        "queue_end": lab.end(),
        "totals": rows(conn, _TOTALS)[0],
        "running": running,
        "testboxes": testboxes,
        "trees": trees,
        "tables": requests["open_tables"],
        "bisections": requests["open_bisections"],
        "recent_tables": list_tables(conn, {"status": "done,failed,cancelled"}, 12),
        "recent_bisections": [
            row for row in list_bisections(conn, None, 12) if row["status"] != "running"
        ][:8],
        "incidents": list_incidents(conn, None, 5, fixed=fixed),
        "lately": [_recent(row) for row in rows(conn, _LATELY, limit=8)],
        "swings": [_swing(row) for row in rows(conn, _SWINGS, limit=8)],
        "reports": list_reports(conn, {"kind": _OF_EVERYBODY}, 8),
        "problems": _problems(conn, testboxes, trees, fixed),
    }


def _swing(row: Row) -> Row:
    return row | {
        "comparison": shown("comparison", row["comparison"]),
        "bisection": shown("bisection", row["bisection"]),
    }


def _recent(row: Row) -> Row:
    commit, subject, author = (row.pop(key) for key in ("culprit", "subject", "author"))
    return _swing(row) | {
        "culprit": {"commit": commit, "subject": subject, "author": author} if commit else None,
        "incident": shown("incident", row["incident"]),
        "report": shown("report", row["report"]),
    }


def _queue(conn: sa.Connection) -> dict[str, dict[str, int]]:
    queue = {kind: dict.fromkeys(("waiting", "ready", "running"), 0) for kind in ("build", "boot")}
    for row in rows(conn, _QUEUE):
        queue[row["kind"]][row["state"]] = row["orders"]
    return queue


def long_transactions(conn: sa.Connection) -> list[Row]:
    """A problem for each transaction of the service's parts that has been open for long."""
    return [
        _problem(
            f"{row['part'].partition(' ')[2]} has been in one transaction for"
            f" {row['seconds'] / 60:.0f} minutes; its {'' if row['active'] else 'last '}statement"
            f"{' waits for another transaction' if row['locked'] else ''}: {row['statement']}",
            None,
        )
        for row in rows(conn, _LONG_TRANSACTIONS, seconds=LONG_SECONDS)
    ]


def _problems(
    conn: sa.Connection, testboxes: list[Row], trees: list[Row], fixed: Mapping[int, LooksFixed]
) -> list[Row]:
    problems = [
        _problem(f"tree {row['name']}: {row['problem']}", f"/tree/{row['name']}")
        for row in trees
        if row["problem"]
    ]
    problems += [
        _problem(text, f"/testbox/{row['name']}")
        for row in testboxes
        if (text := testbox_status.trouble(row))
    ]
    problems += [
        _problem(f"{row['reason']}; check that master, workers and loop are running", "/orders")
        for row in testbox_status.alerts(conn)
        if row["kind"] == "stuck"
    ]
    for row in rows(conn, _IDLE_TESTBOXES, seconds=LONG_SECONDS):
        oldest = shown("order", row["oldest"])
        text = (
            f"testbox {row['name']} has been idle for {row['seconds'] / 60:.0f} minutes beside"
            f" {count(row['orders'], 'ready order')}, the oldest {oldest}: the loop hands out none;"
            " see its log"
        )
        problems.append(_problem(text, f"/order/{oldest}"))
    problems += long_transactions(conn)
    for row in rows(conn, _FAILED_REQUESTS):
        id = shown(row["kind"], row["id"])
        problems.append(
            _problem(
                f"{row['kind']} {id} failed: {row['reason'] or 'no reason was recorded'}",
                f"/{row['kind']}/{id}",
            )
        )
    for row in rows(conn, _INVALID_BOOTS):
        text = (
            f"testbox {row['testbox']}: {row['boots']} boots of the last day do not count;"
            f" reason of the last: {row['reason']}"
        )
        problems.append(_problem(text, f"/boot/{shown('boot', row['last'])}"))
    for name, sentences in testbox_status.left_out(
        conn, [row["name"] for row in testboxes]
    ).items():
        problems += [_problem(f"testbox {name}: {why}", f"/testbox/{name}") for why in sentences]
    for row in rows(conn, _FAILED_ORDERS):
        id = shown("order", row["id"])
        problems.append(
            _problem(
                f"{row['kind']} order {id} failed: {row['reason'] or 'no reason was recorded'}",
                f"/order/{id}",
            )
        )
    if refused := refused_tokens(conn):
        problems.append(_problem(f"{count(refused, 'token')}: {NotLimited()}", "/tokens"))
    if (mail := switch(conn))["stopped"]:
        why = f": {mail['why']}" if mail["why"] else ""
        problems.append(
            _problem(
                f"mail is stopped by {mail['who']}{why}; no report is sent until"
                " `swingbot report resume`",
                "/outbox",
            )
        )
    for incident, fix in fixed.items():
        id, commit = ids.show("incident", incident), fix["commit"][:12]
        problems.append(
            _problem(
                f"incident {id} looks fixed since {commit} ({fix['change_pct']:+.1f} %): confirm it"
                f" with `swingbot incident fixed-by {id} {commit}`, which measures that tip",
                f"/incident/{id}",
            )
        )
    for row in rows(conn, _STUCK_MAIL):
        id = shown("report", row["id"])
        problems.append(_problem(_mail_problem(str(id), row), f"/report/{id}"))
    return problems


def _mail_problem(id: str, row: Row) -> str:
    if row["state"] == "held":
        why = f" ({row['reason']})" if row["reason"] else ""
        return (
            f"report {id} is held{why}: read it, then run `swingbot report release {id}`"
            f" or `swingbot report drop {id} --reason ...`"
        )
    if row["state"] == "unknown":
        return (
            f"it is not known whether report {id} was sent: look for it in the recipient's archive,"
            " then release or drop it"
        )
    why = f": {row['error']}" if row["error"] else ""
    return f"report {id} could not be sent yet and will be retried{why}"


def _problem(text: str, link: str | None) -> Row:
    return {"text": text, "link": link}
