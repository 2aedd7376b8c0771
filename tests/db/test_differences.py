"""What is known of two kernels' boots besides their numbers, read from the database."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from swingbot.core.stats.compare import BootRuns, Rule, compare
from swingbot.service.gather_differences import differences_of
from swingbot_db.store import PgStore
from swingbot_jobs import testbox
from tests import builders
from tests.builders import METRIC

VM = testbox.load_all(Path(__file__).parents[2] / "workers" / "testboxes")["vm-tcg"]
FACTS = {"microcode": "0x1", "cmdline": "console=ttyS0 swingbot.delay_us=3", "thp_enabled": "always", "rootfs": "00ff"}


def test_facts_of_boots_and_boots_that_gave_nothing_reach_the_verdict(conn: sa.Connection) -> None:
    box, tree = builders.a_testbox(conn, VM.name), builders.a_tree(conn)
    base, head = (builders.a_kernel(conn, tree, number) for number in (1, 2))
    for k in range(4):
        builders.a_boot(conn, box, base, k=k, values={METRIC: [100.0, 101.0, 100.0]}, facts=FACTS)
        builders.a_boot(conn, box, head, k=k, values={METRIC: [90.0, 91.0, 90.0]}, facts=FACTS | {"thp_enabled": "madvise"})
    store = PgStore(conn)

    def known(ks: range) -> tuple[str | None, str | None]:
        found = differences_of(store, [base.image, head.image], VM, box.spec, "", list(ks))
        return found.must, found.told

    assert known(range(4)) == (None, "thp_enabled differs: always in base, madvise in head")
    builders.a_boot(conn, box, head, k=4, values={METRIC: [90.0]}, facts=FACTS | {"microcode": "0x2"})
    assert known(range(5))[0] == "microcode differs: 0x1 in base, 0x1 and 0x2 in head"


def test_boots_that_panicked_count_as_lost_runs(conn: sa.Connection) -> None:
    box, tree = builders.a_testbox(conn, VM.name), builders.a_tree(conn)
    base, head = (builders.a_kernel(conn, tree, number) for number in (1, 2))
    for k in range(4):
        builders.a_boot(conn, box, base, k=k, values={METRIC: [100.0, 101.0, 100.0]})
        builders.a_boot(conn, box, head, k=k, values={METRIC: [90.0, 91.0, 90.0]} if k < 2 else None, outcome="up" if k < 2 else "oopsed")
    found = differences_of(PgStore(conn), [base.image, head.image], VM, box.spec, "", list(range(4)))
    boots = [BootRuns(k=k, values=(v, v + 1, v)) for v in (90.0,) for k in range(2)]
    row = compare([BootRuns(k=k, values=(100.0, 101.0, 100.0)) for k in range(4)], found.with_lost(1, boots, 3), Rule(better="higher"))
    assert row.verdict == "invalid"
    assert "6 of 12 runs of head gave no result" in (row.reason or "")


def test_one_image_is_identical(conn: sa.Connection) -> None:
    box, tree = builders.a_testbox(conn, VM.name), builders.a_tree(conn)
    kernel = builders.a_kernel(conn, tree, 1)
    builders.a_boot(conn, box, kernel, values={METRIC: [100.0]}, facts=FACTS)
    found = differences_of(PgStore(conn), [kernel.image, kernel.image], VM, box.spec, "", [0])
    assert (found.identical, found.must, found.told) == (True, None, None)
