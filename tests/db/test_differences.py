"""What is known of two kernels' boots besides their numbers, read from the database."""

from __future__ import annotations

import re
from pathlib import Path

import sqlalchemy as sa

from swingbot.app.commands import text
from swingbot.core.model.records import BootNumbers
from swingbot.core.report.table.formats import as_text
from swingbot.core.report.table.sheet import sheet_of_table
from swingbot.core.stats.fact_differences import FactDifference, against, explanation, facts_for
from swingbot.core.table.rows import fact_differences
from swingbot.service.result.boots import booted_arm
from swingbot_db import read
from swingbot_db.store import PgTransaction
from swingbot_jobs.testbox.file import load_all
from tests import builders
from tests.builders import METRIC

VM = load_all(Path(__file__).parents[2] / "workers" / "testboxes")["vm-tcg"]
FACTS = {
    "microcode": "0x1",
    "cmdline": "console=ttyS0 swingbot.delay_us=3",
    "thp_enabled": "always",
    "rootfs": "00ff",
}


def differences_of(
    conn: sa.Connection,
    kernels: tuple[builders.Kernel, builders.Kernel],
    testbox: builders.Testbox,
    series: str,
    ks: range,
) -> tuple[FactDifference, ...]:
    tx, numbers = PgTransaction(conn), BootNumbers(list(ks))
    base, head = (
        booted_arm(tx.specs, tx.boots, kernel.image, VM.name, testbox.spec, series, numbers)
        for kernel in kernels
    )
    return fact_differences(base, head, paired=VM.repeatable)


def test_facts_of_boots_and_boots_that_gave_nothing_reach_the_verdict(conn: sa.Connection) -> None:
    testbox, tree = builders.a_testbox(conn, VM.name), builders.a_tree(conn)
    base, head = (builders.a_kernel(conn, tree, number) for number in (1, 2))
    for k in range(4):
        builders.a_boot(
            conn, testbox, base, k=k, values={METRIC: [100.0, 101.0, 100.0]}, facts=FACTS
        )
        builders.a_boot(
            conn,
            testbox,
            head,
            k=k,
            values={METRIC: [90.0, 91.0, 90.0]},
            facts=FACTS | {"thp_enabled": "madvise"},
        )

    def known(ks: range) -> tuple[str | None, str | None]:
        found = differences_of(conn, (base, head), testbox, "", ks)
        return against(found), explanation(found)

    assert known(range(4)) == (None, "thp_enabled differs: always in base, madvise in head")
    builders.a_boot(
        conn, testbox, head, k=4, values={METRIC: [90.0]}, facts=FACTS | {"microcode": "0x2"}
    )
    assert known(range(5))[0] == "microcode differs: 0x1 in base, 0x1 and 0x2 in head"


def two_settings(
    conn: sa.Connection,
) -> tuple[builders.Testbox, builders.Kernel, builders.Kernel, int]:
    """A comparison on a machine without swingbot's root file system; huge pages differ by side."""
    testbox, tree = builders.a_testbox(conn, VM.name), builders.a_tree(conn)
    base, head = (builders.a_kernel(conn, tree, number) for number in (1, 2))
    comparison = builders.a_comparison(conn, tree, base, head, [testbox], boots=2)
    for k in range(2):
        for kernel, enabled in ((base, "always"), (head, "madvise")):
            facts = {"thp_enabled": enabled, "kernel_release": kernel.commit[:7], "load1": k}
            builders.a_boot(
                conn,
                testbox,
                kernel,
                k=k,
                series=f"c{comparison}",
                values={METRIC: [100.0]},
                facts=facts,
            )
    return testbox, base, head, comparison


def test_a_setting_blocks_unless_the_job_compares_or_demands_it(conn: sa.Connection) -> None:
    testbox, base, head, comparison = two_settings(conn)
    found = differences_of(conn, (base, head), testbox, f"c{comparison}", range(2))
    assert (
        "thp_enabled differs: always in base, madvise in head (demand thp_enabled in the job"
        in (against(facts_for(found, (), ())) or "")
    )
    comparing = facts_for(found, (), ("thp_enabled",))
    assert (against(comparing), explanation(comparing)) == (
        None,
        "thp_enabled differs: always in base, madvise in head",
    )
    demanding = facts_for(found, ("thp_enabled",), ())
    # it was so in the runs, whatever the boots began with
    assert (against(demanding), explanation(demanding)) == (None, None)


def test_how_the_sheets_differ_is_the_first_that_is_shown(conn: sa.Connection) -> None:
    _, base, _, number = two_settings(conn)
    comparison = read.table(conn, number)
    assert [(d["fact"], d["kind"], d["testbox"]) for d in comparison["facts_differ"]] == [
        ("thp_enabled", "blocks", VM.name),
        ("kernel_release", "variant", VM.name),
    ]
    assert comparison["facts_differ"][1]["base"] == [base.commit[:7]]
    shown = as_text(sheet_of_table(comparison)).splitlines()
    assert shown[3:6] == [
        "facts that differ:",
        f"  {VM.name}: thp_enabled differs: always in base, madvise in head [BLOCKS A VERDICT]",
        "  the kernels themselves: kernel_release",
    ]


def test_the_sheet_of_a_boot_has_what_is_known_and_what_is_not(conn: sa.Connection) -> None:
    testbox, tree = builders.a_testbox(conn, VM.name), builders.a_tree(conn)
    number = builders.a_boot(
        conn,
        testbox,
        builders.a_kernel(conn, tree, 1),
        values={METRIC: [1.0]},
        facts={"thp_enabled": "always", "odd": "<b>"},
    )
    boot = read.boot(conn, number)
    lines = {line["name"]: line["value"] for group in boot["sheet"].values() for line in group}
    assert (lines["thp_enabled"], lines["governor"], lines["odd"]) == ("always", None, "<b>")
    assert lines["compiler"] and boot["facts"] == {"thp_enabled": "always", "odd": "<b>"}
    shown = text.boot(boot)
    assert re.search(r"^  thp_enabled +always$", shown, re.MULTILINE) and re.search(
        r"^  governor +-$", shown, re.MULTILINE
    )
