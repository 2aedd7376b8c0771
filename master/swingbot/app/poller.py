"""Poll the watched branches beside the rounds of the loop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final

from swingbot.core.model.records import Tree
from swingbot.service.ports import Lab
from swingbot.service.watch.trees import poll_tree

# Number of branches that are polled at the same time. Most of a poll is waiting for the remote;
# fetches into the mirror run one at a time.
POLLS: Final = 4
LIST_SECONDS: Final = 2.0  # longest time until a new tree is noticed
STOP_SECONDS: Final = 5.0  # for polls to end when the loop stops; a fetch may take an hour


class Poller:
    """Threads that poll each tree when it is new and then every `every` seconds.

    The tree that has waited longest is next. A remote that does not answer occupies one thread; it
    delays no round, and no other tree while a thread is free.
    """

    def __init__(self, lab: Lab, every: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._lab, self._every, self._clock = lab, every, clock
        self._changed = threading.Condition()
        # All below is guarded by `_changed`.
        self._trees: list[Tree] = []
        self._listed = float("-inf")
        self._polled: dict[int, float] = {}  # when the last poll of each tree began
        self._under_way: set[int] = set()
        self._faults: dict[int | None, Exception] = {}  # by tree; None: listing the trees
        self._over = False
        self._threads = [
            threading.Thread(target=self._work, name=f"poll {number}", daemon=True)
            for number in range(POLLS)
        ]

    def __enter__(self) -> Poller:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._changed:
            self._over = True
            self._changed.notify_all()
        end = time.monotonic() + STOP_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))

    def wake(self) -> None:
        """Look at the list of trees again: something has changed."""
        with self._changed:
            self._listed = float("-inf")
            self._changed.notify()

    def check(self) -> None:
        """Raise the fault of a tree's last poll, if there was one.

        The error of an unreadable remote is recorded with the tree instead.
        """
        with self._changed:
            for fault in self._faults.values():
                raise fault

    def next_due(self) -> Tree | None:
        """Return the tree to poll now, and count it as under way; None if no tree is due."""
        with self._changed:
            if self._clock() - self._listed >= LIST_SECONDS:
                self._list()
            now = self._clock()
            due = [
                tree
                for tree in self._trees
                if tree.id not in self._under_way and now - self._last(tree) >= self._every
            ]
            if not due:
                return None
            tree = min(due, key=self._last)
            self._polled[tree.id] = now
            self._under_way.add(tree.id)
            return tree

    def poll(self, tree: Tree) -> None:
        """Poll a tree that `next_due` returned."""
        fault: Exception | None = None
        try:
            poll_tree(self._lab.transaction, self._lab.tools.git, tree)
        except Exception as found:
            fault = found
        with self._changed:
            self._under_way.discard(tree.id)
            self._note(tree.id, fault)

    def _work(self) -> None:
        while True:
            tree = self.next_due()
            if tree is not None:
                self.poll(tree)
            with self._changed:
                if self._over:
                    return
                if tree is None:
                    self._changed.wait(LIST_SECONDS)

    def _list(self) -> None:
        self._listed = self._clock()
        try:
            with self._lab.transaction("list trees") as tx:
                self._trees = tx.trees.all()
        except Exception as fault:
            self._note(None, fault)
        else:
            self._note(None, None)
            known = {tree.id for tree in self._trees}
            self._faults = {
                id_: fault for id_, fault in self._faults.items() if id_ in {None, *known}
            }

    def _note(self, tree: int | None, fault: Exception | None) -> None:
        if fault is None:
            self._faults.pop(tree, None)
        else:
            self._faults[tree] = fault

    def _last(self, tree: Tree) -> float:
        return self._polled.get(tree.id, float("-inf"))
