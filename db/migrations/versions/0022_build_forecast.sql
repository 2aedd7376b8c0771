-- Forecast duration of a kernel build at the time of its request, the basis of estimates for dependent work (core/plan/costs.py).

CREATE TABLE build_forecast (
    build_key   text PRIMARY KEY CHECK (build_key ~ '^[0-9a-f]{64}$'),
    seconds     double precision NOT NULL CHECK (seconds >= 0),
    foreseen_at timestamptz NOT NULL DEFAULT now()
);
