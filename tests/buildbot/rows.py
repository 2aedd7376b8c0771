"""Rows that the loop would have made."""

from __future__ import annotations

from typing import Any

from tests.buildbot.lab import Lab

COMMIT, KEY = "1" * 40, "a" * 64


def add_build_order(lab: Lab, key: str = KEY, commit: str = COMMIT, compiler: str = "gcc") -> int:
    """A kernel to build, its first attempt and a wanted dispatch of it; returns the attempt."""
    tree = lab.sql(
        (
            "INSERT INTO tree (name, url, branch, base_commit) VALUES ('t' || "
            "gen_random_uuid(), 'u',"
            " 'b', :c) RETURNING id"
        ),
        c=commit,
    )[0].id
    variant = lab.sql(
        "INSERT INTO variant (tree, commit, subject, tree_hash, kconfig, compiler, build_key,"
        " origin)"
        " VALUES (:t, :c, 's', :c, 'k', :compiler, :k, 'branch') RETURNING id",
        t=tree,
        c=commit,
        k=key,
        compiler=compiler,
    )[0].id
    order = lab.sql(
        (
            "INSERT INTO orders (kind, key, build_key, variant, state) VALUES ('build',"
            " 'build:' || :k,"
            " :k, :v, 'running') RETURNING id"
        ),
        k=key,
        v=variant,
    )[0].id
    return add_attempt(lab, order, "kernel")


def add_boot_order(lab: Lab, testbox: str, image: str) -> int:
    """A boot of `image` on `testbox`, whose kernel was built before; returns the attempt."""
    built = add_build_order(lab)
    lab.sql("UPDATE dispatch SET state = 'over', ended_at = now() WHERE attempt = :a", a=built)
    lab.sql("UPDATE attempt SET state = 'dead', ended_at = now() WHERE id = :a", a=built)
    lab.sql(
        "INSERT INTO kernel_build (build_key, status, image_sha256, compiler_version, seconds,"
        " attempt, origin)"
        " VALUES (:k, 'built', :i, 'gcc', 1, :a, 'measured')",
        k=KEY,
        i=image,
        a=built,
    )
    lab.sql("INSERT INTO testbox (name, tbox_group, facts) VALUES (:n, :n, '{}')", n=testbox)
    jobs = '[{"name": "hackbench-1", "program": "hackbench", "params": {}, "runs": 1}]'
    lab.sql(
        "INSERT INTO boot_spec (sha256, unit_jobs) VALUES (:s, CAST(:j AS jsonb))",
        s="b" * 64,
        j=jobs,
    )
    order = lab.sql(
        "INSERT INTO orders (kind, key, build_key, variant, testbox, spec, series, k, state)"
        " SELECT 'boot', 'boot:1', build_key, id, :n, :s, '', 0,"
        " 'running' FROM variant RETURNING id",
        n=testbox,
        s="b" * 64,
    )[0].id
    return add_attempt(lab, order, f"boot-{testbox}")


def add_attempt(lab: Lab, order: int, builder: str, number: int = 1) -> int:
    attempt = lab.sql(
        "INSERT INTO attempt (order_id, number) VALUES (:o, :n) RETURNING id", o=order, n=number
    )[0].id
    add_dispatch(lab, attempt, builder, 1)
    return int(attempt)


def add_dispatch(lab: Lab, attempt: int, builder: str, number: int) -> None:
    lab.sql(
        "INSERT INTO dispatch (attempt, number, builder, external_id)"
        " SELECT id, :n, :b, 'o' || order_id || '/a' || number || '/d' || :n FROM attempt WHERE id"
        " = :a",
        a=attempt,
        b=builder,
        n=number,
    )


def attempt_row(lab: Lab, attempt: int) -> Any:
    return lab.sql("SELECT * FROM attempt WHERE id = :a", a=attempt)[0]


def dispatch_row(lab: Lab, attempt: int) -> Any:
    """The newest dispatch of an attempt."""
    return lab.sql(
        "SELECT * FROM dispatch WHERE attempt = :a ORDER BY number DESC LIMIT 1", a=attempt
    )[0]
