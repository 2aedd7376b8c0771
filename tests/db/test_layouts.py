"""A bisection's boots of other layouts: ordered, built, booted and learnt from, on a real database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from swingbot.app.settings import load
from swingbot.core.bisect.state import BisectionState
from swingbot.service.advance_bisections import boot_key, state_of
from swingbot.service.make_variants import in_layout
from swingbot.service.place_orders import want_boot
from swingbot.service.start_bisection import start_bisection
from tests.fakelinux import FakeCommit, add_commits, make_fakelinux
from tests.fakes.brain import METRIC, Brain, make_brain
from tests.fakes.mail import brain_environment, running_smtpd


@pytest.fixture
def brain(tmp_path: Path, db_url: str, engine: sa.Engine) -> Iterator[Brain]:
    settings = load(environ=brain_environment(tmp_path / "state", db_url))
    make_fakelinux(tmp_path / "linux", [])
    with running_smtpd(settings):
        yield make_brain(settings, engine, tmp_path / "linux")


def state(brain: Brain, number: int) -> BisectionState:
    with brain.lab.transaction("look") as store:
        bisection, points = store.bisection(number), store.points(number)
        assert bisection is not None
        return state_of(brain.lab, store, bisection, points, store.kernel_builds([variant.build_key for variant, _, _ in points]))


def test_a_boot_of_another_layout_is_of_another_kernel_and_says_so(brain: Brain) -> None:
    base = brain.lab.git.fetch_branch("base", str(brain.repo), "main")
    brain.watch(base)
    made = add_commits(brain.repo, [FakeCommit(), FakeCommit(), FakeCommit(speed=88), FakeCommit()])
    number = start_bisection(brain.lab, tree_name="fake", good=base, bad=made[-1], job_files=[], overrides={}, metric=METRIC, testbox=None)
    with brain.lab.transaction("ask") as store:
        bisection, good = store.bisection(number), store.points(number)[0][0]
        assert bisection is not None
        store.add_want(number, 0, 900, "confirm", layout=2)
        laid_out = in_layout(brain.lab, store, good, 2)
        assert laid_out == in_layout(brain.lab, store, good, 2) and laid_out.commit == good.commit and laid_out.build_key != good.build_key
        assert in_layout(brain.lab, store, good, 0) == good
        want_boot(brain.lab, store, laid_out, boot_key(bisection, laid_out, 900), 40, bisection=number)
    assert [(flight.k, flight.layout) for flight in state(brain, number).in_flight] == [(900, 2)]
    (entry,) = [entry for entry in brain.facts("b", number)["log"] if entry["layout"]]
    assert entry["order_state"] == "waiting" and entry["values"] is None
    brain.run()
    (seen,) = [o for o in state(brain, number).observations if o.layout]
    assert (seen.idx, seen.k, seen.layout, seen.box) == (0, 900, 2, 0) and seen.values
    with brain.engine.connect() as conn:
        images = conn.execute(sa.text("SELECT count(DISTINCT image_sha256) FROM boot x JOIN variant v USING (build_key) WHERE v.commit = :c"), {"c": base})
        assert images.scalar_one() == 2
    assert brain.facts("b", number)["culprit"]["commit"] == made[2]
