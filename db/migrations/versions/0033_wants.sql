-- The orders of a comparison or bisection; want_once begins with the order.
CREATE INDEX want_of_comparison ON want (comparison) WHERE comparison IS NOT NULL;
CREATE INDEX want_of_bisection ON want (bisection) WHERE bisection IS NOT NULL;
