"""A bisection's boots of other layouts and on several testboxes: ordered, built, booted and
learnt from, on a real database."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from swingbot.app.settings import load
from swingbot.app.wiring import sync_testboxes
from swingbot.core.bisect.state import BisectionState
from swingbot.core.model.bisection import WantedBoot
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.service.bisect.advance import state_of
from swingbot.service.bisect.boot_keys import boot_key
from swingbot.service.bisect.start import BisectionRequest, start_bisection
from swingbot.service.kernel.variants import in_layout
from swingbot.service.order.place import want_boot
from swingbot.service.ports import RequestError
from tests.fakelinux import FakeCommit, add_commits, make_fakelinux
from tests.fakes.brain import Brain, make_brain
from tests.fakes.loop import METRIC
from tests.fakes.mail import brain_environment, running_smtpd


@pytest.fixture
def brain(tmp_path: Path, db_url: str, engine: sa.Engine) -> Iterator[Brain]:
    settings = load(environ=brain_environment(tmp_path / "state", db_url))
    make_fakelinux(tmp_path / "linux", [])
    with running_smtpd(settings):
        yield make_brain(settings, engine, tmp_path / "linux")


def state(brain: Brain, number: int) -> BisectionState:
    with brain.lab.transaction("look") as tx:
        bisection, points = tx.bisections.get(number), tx.bisections.points(number)
        assert bisection is not None
        return state_of(
            brain.lab.tools,
            brain.lab.catalogue,
            tx,
            bisection,
            points,
            tx.builds.by_key([variant.build_key for variant, _, _ in points]),
        )


def test_a_boot_of_another_layout_is_of_another_kernel_and_says_so(brain: Brain) -> None:
    base = brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main")
    brain.watch(base)
    made = add_commits(brain.repo, [FakeCommit(), FakeCommit(), FakeCommit(speed=88), FakeCommit()])
    number = start_bisection(
        brain.lab,
        BisectionRequest(
            tree="fake",
            good=base,
            bad=made[-1],
            job_files=[],
            overrides={},
            metric=METRIC,
            testbox=None,
        ),
    )
    with brain.lab.transaction("ask") as tx:
        bisection, good = tx.bisections.get(number), tx.bisections.points(number)[0][0]
        assert bisection is not None
        tx.bisections.add_want(number, WantedBoot(0, 900, "confirm", layout=2))
        laid_out = in_layout(brain.lab.catalogue.kconfigs, tx.trees, tx.variants, good, 2)
        assert (
            laid_out == in_layout(brain.lab.catalogue.kconfigs, tx.trees, tx.variants, good, 2)
            and laid_out.commit == good.commit
            and laid_out.build_key != good.build_key
        )
        assert in_layout(brain.lab.catalogue.kconfigs, tx.trees, tx.variants, good, 0) == good
        want_boot(tx.orders, laid_out, boot_key(bisection, laid_out, 900), 40, bisection=number)
    assert [(flight.k, flight.layout) for flight in state(brain, number).in_flight] == [(900, 2)]
    (entry,) = [entry for entry in brain.facts("b", number)["log"] if entry["layout"]]
    assert entry["order_state"] == "waiting" and entry["values"] is None
    brain.run()
    (seen,) = [o for o in state(brain, number).observations if o.k == 900]
    assert (seen.idx, seen.k, seen.layout, seen.testbox) == (0, 900, 2, 0) and seen.values
    with brain.engine.connect() as conn:
        images = conn.execute(
            sa.text(
                "SELECT count(DISTINCT image_sha256) FROM boot x JOIN variant v USING "
                "(build_key) WHERE v.commit = :c"
            ),
            {"c": base},
        )
        assert images.scalar_one() == 2
    assert brain.facts("b", number)["culprit"]["commit"] == made[2]


def grouped(brain: Brain, *, repeatable: bool = True) -> None:
    """Give vm-icount a twin in group `pair`."""
    catalogue = brain.lab.catalogue
    present = catalogue.testboxes.present
    one = dataclasses.replace(present["vm-icount"], tbox_group="pair")
    twin = dataclasses.replace(one, name="vm-twin", repeatable=repeatable)
    testboxes = KnownTestboxes(present={**present, "vm-icount": one, "vm-twin": twin})
    catalogue = dataclasses.replace(catalogue, testboxes=testboxes)
    brain.lab = dataclasses.replace(brain.lab, catalogue=catalogue)
    sync_testboxes(brain.lab)


def bisect_on(brain: Brain, testbox: str) -> tuple[int, list[str]]:
    base = brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main")
    brain.watch(base)
    made = add_commits(
        brain.repo,
        [
            *[FakeCommit() for _ in range(5)],
            FakeCommit(speed=88),
            *[FakeCommit() for _ in range(4)],
        ],
    )
    number = start_bisection(
        brain.lab,
        BisectionRequest(
            tree="fake",
            good=base,
            bad=made[-1],
            job_files=[],
            overrides={},
            metric=METRIC,
            testbox=testbox,
        ),
    )
    return number, made


def test_testboxes_of_a_group_share_a_bisection(brain: Brain) -> None:
    grouped(brain)
    number, made = bisect_on(brain, "pair")
    assert state(brain, number).testboxes == 2
    brain.run()
    found = brain.facts("b", number)
    assert found["culprit"]["commit"] == made[5]
    assert {entry["testbox_index"] for entry in found["log"]} == {0, 1}
    assert len(found["terms"]["testboxes"]) == 2
    with brain.engine.connect() as conn:
        sql = (
            "SELECT w.testbox_index, x.testbox FROM bisection_want w JOIN observation o USING "
            "(bisection, idx, k) JOIN boot x ON x.id = o.boot WHERE w.bisection = :b"
        )
        assert {tuple(row) for row in conn.execute(sa.text(sql), {"b": number})} == {
            (0, "vm-icount"),
            (1, "vm-twin"),
        }


def test_one_testbox_of_a_group_works_alone(brain: Brain) -> None:
    grouped(brain)
    number, made = bisect_on(brain, "vm-twin")
    brain.run()
    assert brain.facts("b", number)["culprit"]["commit"] == made[5]
    assert state(brain, number).testboxes == 1 and {
        entry["testbox_index"] for entry in brain.facts("b", number)["log"]
    } == {0}


def test_testboxes_that_differ_in_kind_do_not_share_a_bisection(brain: Brain) -> None:
    grouped(brain, repeatable=False)
    with pytest.raises(RequestError, match="name one"):
        bisect_on(brain, "pair")
