-- What a kernel build was foreseen to take when it was asked for, from which estimates of what waits for it are made (core/plan/costs.py).

CREATE TABLE build_forecast (
    build_key   text PRIMARY KEY CHECK (build_key ~ '^[0-9a-f]{64}$'),
    seconds     double precision NOT NULL CHECK (seconds >= 0),
    foreseen_at timestamptz NOT NULL DEFAULT now()
);
