"""A branch that is rebuilt every day, through rounds of the brain on the store in memory and a
real git repository."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import pytest

from swingbot.adapters.git import Mirror
from swingbot.core.model.records import JobFile, Tree
from swingbot.core.moderation.filing import MailRules
from swingbot.service.detect.screen_tips import levels_before
from swingbot.service.incident.keep import say
from swingbot.service.watch.trees import poll_tree
from tests.contract.store.world import TESTBOX, a_testbox
from tests.fakes.mail import memory_sender
from tests.fakes.memory_lab import JOBS, MemoryLab
from tests.rebased import FakePatch, RebasedTree

PATCHES = 60
SLOW = "speed=0.88"


@dataclass(kw_only=True)
class World:
    memory: MemoryLab
    repo: RebasedTree
    patches: list[FakePatch]
    tree: Tree

    def rebuild(self) -> list[str]:
        """Upstream moves, the branch is rebuilt and looked at; everything that follows is done."""
        self.repo.advance(4)
        commits = self.repo.rebuild(self.patches)
        self.look()
        return commits

    def look(self) -> None:
        with self.memory.store.transaction() as tx:
            tree = tx.trees.get(self.tree.id)
        assert poll_tree(self.memory.lab.transaction, self.memory.lab.tools.git, tree) is None
        self.run()

    def run(self) -> None:
        store = self.memory.store
        self.memory.run()
        while memory_sender(store.transaction).send_due(store.db.now()):
            self.memory.run()

    def change(self, name: str, text: str) -> None:
        at = next(i for i, patch in enumerate(self.patches) if patch.name == name)
        self.patches[at] = replace(self.patches[at], text=text)

    @property
    def boots(self) -> int:
        return len(self.memory.store.db.boots)

    @property
    def mails(self) -> list[str]:
        return [r.kind for r in self.memory.store.db.reports.values() if r.state == "sent"]

    @property
    def statuses(self) -> list[str]:
        return [incident.status for incident in self.memory.store.db.incidents.values()]

    @property
    def swings(self) -> list[tuple[str, str]]:
        return [(r.swing.state, r.swing.source) for r in self.memory.store.db.swings.values()]

    def bisections(self) -> int:
        return len(self.memory.store.db.bisections)

    def kinds(self) -> Counter[str]:
        return Counter(c.comparison.kind for c in self.memory.store.db.comparisons.values())


def world(
    tmp_path: Path, slow: dict[int, str], patches: int = PATCHES, *, repeatable: bool = True
) -> World:
    repo = RebasedTree(path=tmp_path / "linux")
    memory = MemoryLab(speeds=repo.speeds())
    settings = replace(memory.lab.settings, mail=MailRules(release="release"))
    tools = replace(memory.lab.tools, git=Mirror(tmp_path / "mirror.git"))
    memory.lab = replace(memory.lab, tools=tools, settings=settings)
    testbox = a_testbox(TESTBOX, repeatable=repeatable)
    memory.boot_on([testbox])
    made = [FakePatch(name=f"p{n}", text=slow.get(n, "")) for n in range(patches)]
    base = repo.upstream[-1]
    repo.rebuild(made)
    with memory.store.transaction() as tx:
        tx.testboxes.sync([(testbox, testbox.to_json())])
        tree = tx.trees.add(
            Tree(
                id=0,
                name="mm",
                url=str(repo.path),
                branch="mm-unstable",
                base_commit=base,
                tip_commit=None,
                job_files=(JobFile(name="a.yaml", text=(JOBS / "vm-page-fault.yaml").read_text()),),
                testboxes=(TESTBOX,),
                paths=(),
                kconfig="vm-x86_64",
                compiler="gcc",
            )
        )
    return World(memory=memory, repo=repo, patches=made, tree=tree)


def test_ten_rebases_of_a_branch_with_a_culprit_that_is_mended_by_a_changed_patch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    it = world(tmp_path, {23: SLOW})
    it.look()
    assert (it.statuses, it.mails, it.bisections()) == (["open"], ["first"], 1)
    first, spent = it.boots, []
    for day in range(1, 11):
        before = it.boots
        it.change(f"p{day}", f"version {day}")  # an unrelated patch has a new version
        it.patches.append(FakePatch(name=f"n{day}"))
        it.patches.remove(next(patch for patch in it.patches if patch.name == f"p{40 + day}"))
        it.patches.insert(0, it.patches.pop(30))
        if day == 7:
            it.change("p23", "mended")
        it.rebuild()
        spent.append(it.boots - before)
    with capsys.disabled():
        print(f"\n60 patches, 10 rebases: {first} boots at the first tip, then {spent}")
    assert it.statuses == ["fixed"]
    assert it.mails == ["first", "fixed"]
    assert (it.bisections(), it.kinds()["prove"]) == (1, 1)
    # Each rebase: three boots of a new base and of the tip, and one pair of the culprit and its
    # parent while it is there ...
    assert max(spent[:6]) <= 8
    # ... the new version and its parent, three boots each, once ...
    assert spent[6] <= 12
    # ... and nothing beside the watched tips from then on.
    assert max(spent[7:]) <= 6
    assert first + sum(spent) <= 110


def test_the_history_of_an_incident_says_at_which_tips_it_was_still_there(tmp_path: Path) -> None:
    it = world(tmp_path, {5: SLOW}, patches=12)
    it.look()
    for _ in range(2):
        commits = it.rebuild()
    events = it.memory.store.db.incident_events.values()
    still_events = [event for event in events if event.act == "still"]
    assert [event.detail["tip"] for event in still_events][-1] == commits[-1]
    assert [event.detail["commit"] for event in still_events][-1] == commits[5]
    assert "1 pair of boots" in (still_events[0].reason or "")
    assert len(still_events) == 2


@pytest.mark.parametrize("place", [2, 9])
def test_a_second_culprit_is_found_on_either_side_of_the_one_that_is_known(
    tmp_path: Path, place: int
) -> None:
    it = world(tmp_path, {5: SLOW}, patches=12)
    it.look()
    it.change(f"p{place}", "speed=0.93")
    commits = it.rebuild()
    found = [incident.commit for incident in it.memory.store.db.incidents.values()]
    assert found[1:] == [commits[place]]
    assert it.mails == ["first", "first"]
    it.rebuild()
    assert len(it.statuses) == it.bisections() == 2
    assert it.swings[-1] == ("known", "base")


def test_a_new_version_that_mends_nothing_leaves_the_incident_open_and_is_recognised_from_then_on(
    tmp_path: Path,
) -> None:
    it = world(tmp_path, {5: SLOW}, patches=12)
    it.look()
    it.change("p5", f"version 2\n{SLOW}")
    it.rebuild()
    it.rebuild()
    assert (it.statuses, it.mails, it.bisections()) == (["open"], ["first"], 1)
    assert [state for state, _ in it.swings][1:] == ["known", "known"]
    assert it.kinds()["asked"] == 1, "the new version is checked once"
    it.change("p5", "version 3")
    it.rebuild()
    assert (it.statuses, it.mails) == (["fixed"], ["first", "fixed"])


def test_a_culprit_that_was_dropped_and_comes_back_is_the_same_incident(tmp_path: Path) -> None:
    it = world(tmp_path, {5: SLOW}, patches=12)
    it.look()
    gone = it.patches.pop(5)
    it.rebuild()
    assert (it.statuses, len(it.swings)) == (["open"], 1)
    it.patches.append(gone)
    it.rebuild()
    assert (it.statuses, it.bisections(), it.mails) == (["open"], 1, ["first"])
    assert it.swings[-1] == ("known", "base")


def test_one_pair_suffices_where_boots_are_not_shared_too(tmp_path: Path) -> None:
    it = world(tmp_path, {5: SLOW}, patches=12, repeatable=False)
    it.look()
    it.rebuild()
    assert (it.statuses, it.bisections()) == (["open"], 1)
    assert it.swings[-1] == ("known", "base")
    db = it.memory.store.db
    (pair,) = (c.comparison for c in db.comparisons.values() if c.comparison.kind == "still")
    assert pair.boots == 1
    assert len([b for b in db.boots.values() if b.order.series == f"c{pair.id}"]) == 2


@pytest.mark.parametrize("status", ["closed", "invalid"])
def test_a_culprit_that_a_person_wants_to_hear_no_more_of_is_recognised_too(
    tmp_path: Path, status: Literal["closed", "invalid"]
) -> None:
    it = world(tmp_path, {5: SLOW}, patches=12)
    it.look()
    say(
        it.memory.lab.transaction,
        it.memory.lab.tools.git,
        1,
        "close" if status == "closed" else "invalid",
        who="me",
        reason=None,
    )
    it.rebuild()
    assert (it.statuses, it.bisections()) == ([status], 1)
    assert it.swings[-1] == ("known", "base")


def test_a_culprit_whose_fix_was_lost_is_found_again(tmp_path: Path) -> None:
    it = world(tmp_path, {5: SLOW}, patches=12)
    it.look()
    it.change("p5", "mended")
    it.rebuild()
    it.change("p5", SLOW)
    it.rebuild()
    assert it.bisections() == 2


def test_a_kernel_that_does_not_build_recognises_nothing(tmp_path: Path) -> None:
    it = world(tmp_path, {5: SLOW}, patches=12)
    it.look()
    it.repo.advance(4)
    commits = it.repo.rebuild(it.patches)
    it.memory.broken.add(commits[4])
    it.look()
    assert it.bisections() == 2, "bisected like any other swing"
    kinds = [c.comparison for c in it.memory.store.db.comparisons.values()]
    assert [c.status for c in kinds if c.kind == "still"] == ["failed"]


def test_what_creeps_in_over_rebases_is_held_against_a_tip_that_was_rebased_away(
    tmp_path: Path,
) -> None:
    it = world(tmp_path, {}, patches=4)
    it.look()
    for _ in range(11):
        it.repo.advance(1, "speed=0.994")  # below the smallest change that matters, each
        it.repo.rebuild(it.patches)
        it.look()
    db = it.memory.store.db
    swing = next(row.swing for row in db.swings.values())
    assert swing.source == "creep"
    assert swing.anchor is not None
    assert swing.proof is not None
    assert swing.bisection is not None
    anchor = db.variants[swing.anchor].commit
    tip = db.variants[db.comparisons[swing.comparison].comparison.head].commit
    git, searched = it.memory.lab.tools.git, db.bisections[swing.bisection].bisection
    assert not git.is_ancestor(anchor, tip)
    assert (searched.good, searched.bad) == (git.merge_base(anchor, tip), tip)


def test_levels_go_on_across_rebases_and_restart_with_a_fix(tmp_path: Path) -> None:
    it = world(tmp_path, {2: SLOW}, patches=4)
    it.look()
    for _ in range(3):
        it.rebuild()
    assert levels(it) == pytest.approx([0.88] * 3, rel=0.01), "all tips before the last"
    it.change("p2", "mended")
    it.rebuild()
    it.rebuild()
    assert it.statuses == ["fixed"]
    assert levels(it) == pytest.approx([1.0], rel=0.01), "the tip that has the fix"


def levels(it: World) -> list[float]:
    """What the last tip is held against, relative to a kernel without a culprit."""
    with it.memory.store.transaction() as tx:
        last = tx.comparisons.latest_tip(it.tree.id)
        assert last is not None
        (row,) = (row for row in tx.comparisons.rows(last.id) if row.headline)
        return [
            level.mean / (row.base.mean or 0.0)
            for level in levels_before(tx.comparisons, tx.swings, tx.incidents, last, row.key)
        ]


def test_a_search_in_a_rebased_branch_begins_with_what_is_new_in_it(tmp_path: Path) -> None:
    it = world(tmp_path, {}, patches=12)
    it.look()
    it.change("p7", "speed=0.9")
    commits = it.rebuild()
    (number,) = it.memory.store.db.bisections
    weights = {
        it.memory.store.db.variants[point.variant].commit: point.weight
        for (of, _), point in it.memory.store.db.points.items()
        if of == number
    }
    assert weights[commits[7]] == pytest.approx(10 * weights[commits[6]])
    assert [i.commit for i in it.memory.store.db.incidents.values()] == [commits[7]]
