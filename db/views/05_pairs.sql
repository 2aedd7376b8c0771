-- Comparisons of two kernels, without experiments.

CREATE OR REPLACE VIEW comparison_pair AS
SELECT c.id, c.kind, c.tree, c.change, b.variant AS base, h.variant AS head, c.first_k, c.purpose, c.boots, c.status, c.reason, c.request_key,
       c.created_at, c.ended_at
FROM comparison c
JOIN comparison_arm b ON b.comparison = c.id AND b.arm = 0
JOIN comparison_arm h ON h.comparison = c.id AND h.arm = 1
WHERE c.kind <> 'experiment';
