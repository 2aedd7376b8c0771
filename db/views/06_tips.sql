-- Read models of watched branches.

-- One row per commit that was the tip of its branch, or the base of the first change; `place` counts from 0 in order of first appearance: by
-- change, and in a change its old commit before its new one. The one definition of this order.
CREATE OR REPLACE VIEW v_tips AS
SELECT t.name AS tree, p.commit, row_number() OVER (PARTITION BY t.name ORDER BY min(ARRAY[p.number, p.side])) - 1 AS place, min(p.at) AS seen_at
FROM (SELECT tree, old_commit AS commit, id AS number, 0 AS side, seen_at AS at FROM change
      UNION ALL SELECT tree, new_commit, id, 1, seen_at FROM change) p
JOIN tree t ON t.id = p.tree
GROUP BY t.name, p.commit;

-- One row per change of a branch and comparison of it, with how far its tip came on the way to a mail. `swings` counts alarms; `proved` those that fresh boots
-- confirmed; `culprits` and `mails` count commits that were found and reported because of it.
CREATE OR REPLACE VIEW v_changes AS
SELECT ch.seen_at AS "time", t.name AS tree, ch.kind, ch.old_commit, ch.new_commit, 'c' || c.id AS comparison, c.status, c.reason, c.ended_at AS compared_at,
       n.swings, n.refuted, n.proved, n.bisected, n.not_found, n.culprits, n.mails
FROM change ch
JOIN tree t ON t.id = ch.tree
LEFT JOIN comparison c ON c.change = ch.id
CROSS JOIN LATERAL (
    SELECT count(DISTINCT s.id) AS swings,
           count(DISTINCT s.id) FILTER (WHERE s.state = 'refuted') AS refuted,
           count(DISTINCT s.id) FILTER (WHERE s.state IN ('open', 'bisecting', 'explained', 'not_found')) AS proved,
           count(DISTINCT s.bisection) AS bisected,
           count(DISTINCT s.id) FILTER (WHERE s.state = 'not_found') AS not_found,
           count(DISTINCT ib.incident) AS culprits,
           count(DISTINCT r.incident) AS mails
    FROM swing s
    LEFT JOIN bisection_family b ON b.root = s.bisection
    LEFT JOIN incident_bisection ib ON ib.bisection = b.id
    LEFT JOIN report r ON r.incident = ib.incident AND r.kind = 'first' AND r.state = 'sent'
    WHERE s.comparison = c.id
) n;

-- `behind` counts tips whose comparison has not ended; `problem` says why the last poll failed.
CREATE OR REPLACE VIEW v_trees AS
SELECT t.name AS tree, t.branch, t.tip_commit AS tip, v.subject AS tip_subject, t.polled_at, extract(epoch FROM now() - t.polled_at)::double precision AS polled_seconds,
       t.problem, t.compiler, t.kconfig, t.trust, n.tips, n.behind, n.last_change, extract(epoch FROM now() - n.oldest)::double precision AS behind_seconds
FROM tree t
LEFT JOIN LATERAL (SELECT x.subject FROM variant x WHERE x.tree = t.id AND x.commit = t.tip_commit ORDER BY x.id LIMIT 1) v ON true
CROSS JOIN LATERAL (
    SELECT count(DISTINCT ch.id) AS tips, max(ch.seen_at) AS last_change,
           count(DISTINCT ch.id) FILTER (WHERE c.status IN ('waiting', 'running')) AS behind, min(ch.seen_at) FILTER (WHERE c.status IN ('waiting', 'running')) AS oldest
    FROM change ch LEFT JOIN comparison c ON c.change = ch.id
    WHERE ch.tree = t.id
) n
WHERE t.state = 'watched';

-- Tips that are releases: their subject is `Linux 6.12` or `Linux 6.12-rc3`.
CREATE OR REPLACE VIEW v_releases AS
SELECT DISTINCT tip.seen_at AS "time", tip.tree, tip.commit, v.subject AS release, tip.place
FROM v_tips tip
JOIN tree t ON t.name = tip.tree
JOIN variant v ON v.tree = t.id AND v.commit = tip.commit
WHERE v.subject ~ '^Linux [0-9]';
