-- What private requests hide: a table, the kernels that nothing else has measured, and what was built and booted for them.

-- Whether the reader is none of those to whom it is private. Only requests over the web take a role in which a name counts (`swingbot_db/scope.py`):
-- Grafana's users can set it, and see nothing private.
CREATE OR REPLACE FUNCTION swingbot.hidden(private_to text[]) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT private_to IS NOT NULL AND NOT coalesce(
        current_setting('role') IN ('swingbot_scoped', 'swingbot_changes', 'swingbot_person') AND current_setting('swingbot.person', true) = ANY(private_to), false)
$$;

CREATE OR REPLACE VIEW private_comparison AS
SELECT id AS comparison FROM comparison WHERE private_to IS NOT NULL AND swingbot.hidden(private_to);

CREATE OR REPLACE VIEW private_variant AS
SELECT DISTINCT a.variant
FROM private_comparison c
JOIN comparison_arm a ON a.comparison = c.comparison
JOIN variant v ON v.id = a.variant AND v.origin <> 'branch'
WHERE NOT EXISTS (SELECT FROM comparison_arm o JOIN comparison p ON p.id = o.comparison WHERE o.variant = a.variant AND NOT swingbot.hidden(p.private_to))
  AND NOT EXISTS (SELECT FROM bisection_point p WHERE p.variant = a.variant);

-- A build is that of all kernels with the same contents.
CREATE OR REPLACE VIEW private_build AS
SELECT DISTINCT v.build_key
FROM private_variant p
JOIN variant v ON v.id = p.variant
WHERE NOT EXISTS (SELECT FROM variant o WHERE o.build_key = v.build_key AND o.id NOT IN (SELECT variant FROM private_variant));

CREATE OR REPLACE VIEW private_order AS
SELECT o.id AS order_id FROM private_build p JOIN orders o ON o.build_key = p.build_key;

CREATE OR REPLACE VIEW private_attempt AS
SELECT a.id AS attempt FROM private_order p JOIN attempt a ON a.order_id = p.order_id;

CREATE OR REPLACE VIEW private_boot AS
SELECT b.id AS boot FROM private_order p JOIN boot b ON b.order_id = p.order_id;

CREATE OR REPLACE VIEW private_run AS
SELECT r.id AS run, r.result_root FROM private_boot p JOIN run r ON r.boot = p.boot;

CREATE OR REPLACE VIEW private_result_root AS
SELECT result_root FROM private_run WHERE result_root IS NOT NULL;
