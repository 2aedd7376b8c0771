-- Comparisons of two kernels, without experiments.

CREATE OR REPLACE VIEW comparison_pair AS
SELECT c.id, c.kind, c.tree, c.change, b.variant AS base, h.variant AS head, c.first_k, c.purpose, c.boots, c.status, c.reason, c.request_key,
       c.created_at, c.ended_at, c.private_to
FROM comparison c
JOIN comparison_arm b ON b.comparison = c.id AND b.arm = 0
JOIN comparison_arm h ON h.comparison = c.id AND h.arm = 1
WHERE c.kind <> 'experiment' AND c.purpose <> 'doctor';

-- Each bisection with the one that it is part of: the branch of a merge is searched by a bisection of its own. `merged` is that merge of `root`.
CREATE OR REPLACE VIEW bisection_family AS
WITH RECURSIVE down AS (
    SELECT id, id AS root, NULL::text AS merged FROM bisection WHERE parent IS NULL
    UNION ALL
    SELECT b.id, down.root, coalesce(down.merged, b.merged) FROM bisection b JOIN down ON b.parent = down.id
)
SELECT id, root, merged FROM down;
