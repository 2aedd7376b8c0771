-- Read models of culprits and mails.

-- One row per mail; recipients and text are not shown, nor the reason of a result, which may have its recipient. `held_seconds` counts while it waits for a person.
CREATE OR REPLACE VIEW v_reports AS
SELECT r.created_at AS "time", r.sent_at, 'r' || r.id AS report, r.kind, r.state, CASE WHEN r.kind <> 'result' THEN r.reason END AS reason, r.subject, 'i' || r.incident AS incident, i.status AS incident_status,
       'b' || found.bisection AS bisection, t.name AS tree, v.commit AS culprit, v.subject AS culprit_subject, 'v' || v.id AS culprit_variant,
       coalesce(r.metric, b.metric) AS metric, coalesce(r.testbox, b.testbox) AS testbox,
       CASE WHEN r.state IN ('held', 'unknown') THEN extract(epoch FROM now() - r.created_at)::double precision END AS held_seconds
FROM report r
LEFT JOIN incident i ON i.id = r.incident
LEFT JOIN tree t ON t.id = i.tree
LEFT JOIN variant v ON v.id = i.culprit
LEFT JOIN LATERAL (SELECT min(ib.bisection) AS bisection FROM incident_bisection ib WHERE ib.incident = i.id) found ON true
LEFT JOIN bisection b ON b.id = found.bisection;

-- The way of each culprit from the change of a branch (or the request of its bisection) to its first mail. A stage ends when its work has ended
-- and begins when all earlier ones had; stages without work are left out, and the seconds of an incident add up.
CREATE OR REPLACE VIEW v_stage_times AS
WITH first AS (
    SELECT DISTINCT ON (i.id) i.id, t.name AS tree, b.testbox, b.id AS bisection, b.created_at AS asked, b.ended_at AS searched, ch.seen_at, c.ended_at AS compared,
           p.ended_at AS proved, a.ended_at AS measured
    FROM incident i
    JOIN tree t ON t.id = i.tree
    JOIN incident_bisection ib ON ib.incident = i.id
    JOIN bisection b ON b.id = ib.bisection
    LEFT JOIN swing s ON s.bisection = b.id
    LEFT JOIN comparison c ON c.id = s.comparison
    LEFT JOIN change ch ON ch.id = c.change
    LEFT JOIN comparison p ON p.id = s.proof
    LEFT JOIN comparison a ON a.id = i.comparison
    ORDER BY i.id, b.id, s.id
), mail AS (
    SELECT DISTINCT ON (r.incident) r.incident, r.id, r.created_at, r.sent_at, r.state FROM report r WHERE r.kind = 'first' ORDER BY r.incident, r.state = 'dropped', r.id DESC
), stage AS (
    SELECT f.id, f.tree, f.testbox, f.bisection, m.id AS report, m.state AS report_state, coalesce(f.seen_at, f.asked) AS began, s.number, s.stage, s.ended
    FROM first f
    LEFT JOIN mail m ON m.incident = f.id
    CROSS JOIN LATERAL (VALUES
        (1, 'compare', CASE WHEN f.seen_at IS NOT NULL THEN f.compared END),
        (2, 'prove', f.proved),
        (3, 'bisect', f.searched),
        (4, 'measure', f.measured),
        (5, 'gates', (SELECT max(g.decided_at) FROM incident_gate g WHERE g.incident = f.id)),
        (6, 'draft', m.created_at),
        (7, 'mail', m.sent_at)) AS s (number, stage, ended)
    WHERE s.ended IS NOT NULL
), ordered AS (
    SELECT *, greatest(began, max(ended) OVER (PARTITION BY id ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) AS start FROM stage
)
SELECT start AS "time", greatest(ended, start) AS ended_at, 'i' || id AS incident, tree, testbox, 'b' || bisection AS bisection, 'r' || report AS report, report_state,
       number AS stage_number, stage, extract(epoch FROM greatest(ended, start) - start)::double precision AS seconds
FROM ordered;

-- Alerts that swingbot mails to its operator; an ongoing one has no end.
CREATE OR REPLACE VIEW v_alerts AS
SELECT a.began_at AS "time", a.ended_at, a.kind, coalesce(a.testbox, 'the lab') AS place, a.testbox, a.reason,
       extract(epoch FROM coalesce(a.ended_at, now()) - a.began_at)::double precision AS seconds
FROM alert a;
