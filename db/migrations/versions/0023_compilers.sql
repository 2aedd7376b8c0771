-- The compilers announced by build workers when they log in (docs/kernel-builds.md, "Compilers").

CREATE TABLE worker_compiler (                                          -- replaced at each login of the worker
    worker       text NOT NULL,
    name         text NOT NULL,                                         -- gcc, gcc-12, clang-19
    version      text NOT NULL,                                         -- first line of NAME --version
    problem      text,                                                  -- why it cannot build kernels; null: it can
    announced_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (worker, name)
);
