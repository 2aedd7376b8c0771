"""Boots of two purposes are never the same boot, however many boots a person asks for; base and
head of one purpose stay pairs."""

from __future__ import annotations

import itertools
from pathlib import Path

import sqlalchemy as sa
from click.testing import CliRunner

from swingbot.app.cli import main
from swingbot.service.incident.keep import say
from swingbot.service.prove.request_gates import prove_again
from swingbot.service.tick import tick
from swingbot_db.store import PgTransaction
from tests.fakelinux import FakeCommit, add_commits
from tests.fakes.brain import Brain
from tests.fakes.mail import brain_environment

# What each boot was asked for, as its askers say; comparisons of tips, the pairs of a swing and the
# search share theirs.
_ASKED_FOR = """
SELECT o.id, o.k, o.purpose, o.build_key, c.id AS comparison,
       CASE WHEN c.kind = 'gate' THEN 'gate ' || split_part(c.request_key, ':', 4)
         WHEN c.request_key LIKE 'fix:%' THEN 'fix'
            WHEN c.kind IN ('attribute', 'anchor') THEN c.kind ELSE 'search' END AS what
FROM orders o JOIN want w ON w.order_id = o.id
  LEFT JOIN comparison c ON c.id = w.comparison WHERE o.kind = 'boot'
"""


def test_a_thousand_boots_that_a_person_asked_for_are_none_of_any_other_purpose(
    brain: Brain, tmp_path: Path, db_url: str
) -> None:
    brain.watch(brain.base)
    brain.run()
    made = add_commits(brain.repo, [FakeCommit(), FakeCommit(speed=88), FakeCommit()])
    brain.lab.tools.git.fetch_branch("tip", str(brain.repo), "main")
    asked = CliRunner().invoke(
        main,
        ["compare", made[0], made[1], "--tree", "fake", "--boots", "1000"],
        env=brain_environment(tmp_path / "state", db_url),
    )
    assert asked.exit_code == 0, asked.output
    tick(brain.lab)
    brain.fake.work()
    assert brain.count("orders WHERE k = 999") == 2
    with brain.engine.begin() as conn:  # that all of them are booted is not what this is about
        conn.execute(
            sa.text("UPDATE comparison SET status = 'cancelled', ended_at = now() WHERE id = 2")
        )
    brain.poll()
    brain.run()
    prove_again(brain.lab, 1, ["tip", "layout"], "ada@lab")
    brain.run()
    fix = add_commits(brain.repo, [FakeCommit(speed=100)])[0]
    say(
        brain.lab.transaction,
        brain.lab.tools.git,
        1,
        "fixed-by",
        who="otto@lab",
        reason=None,
        commit=fix,
    )
    brain.poll()
    brain.run()
    for _ in range(2):
        with brain.engine.begin() as conn:
            conn.execute(sa.text("UPDATE orders SET ended_at = ended_at - interval '1 hour'"))
        brain.run()

    testbox = brain.lab.catalogue.testboxes.known("vm-icount")
    purposes: dict[int, set[str]] = {}
    pairs: dict[tuple[int, int], dict[str, int]] = {}
    delays: dict[str, set[int]] = {}
    with brain.engine.connect() as conn:
        for row in conn.execute(sa.text(_ASKED_FOR)):
            delay = testbox.perturbation(row.k, row.purpose)
            purposes.setdefault(row.id, set()).add(row.what)
            delays.setdefault(row.what, set()).add(delay)
            if row.comparison is not None:
                pairs.setdefault((row.comparison, row.k), {})[row.build_key] = delay
    assert delays.keys() == {"search", "attribute", "gate 1", "gate 2", "anchor", "fix"}
    assert {order: found for order, found in purposes.items() if len(found) > 1} == {}
    for one, other in itertools.combinations(delays, 2):
        assert not delays[one] & delays[other], (one, other)
    assert {len(set(pair.values())) for pair in pairs.values()} == {1}
    assert len(delays["search"]) > 900


def test_an_order_document_carries_the_purpose_of_its_order(brain: Brain) -> None:
    brain.watch(brain.base)
    add_commits(brain.repo, [FakeCommit(), FakeCommit(speed=88)])
    brain.run()
    brain.poll()
    brain.run()
    with brain.engine.connect() as conn:
        orders = conn.execute(
            sa.text("SELECT a.id, o.purpose FROM attempt a JOIN orders o ON o.id = a.order_id")
        ).all()
        assert {row.purpose for row in orders} == {"search", "fresh", "gate"}
        for row in orders:
            facts = PgTransaction(conn).attempts.order_facts(row.id)
            assert facts is not None
            assert facts.purpose == row.purpose
