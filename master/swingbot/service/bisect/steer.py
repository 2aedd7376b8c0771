"""Steer a bisection by hand: skip, hint; `resume.py` has the third act.

Each act is recorded with who, when and why, and takes effect at the next step. `who` is the name
of an operator, or a person over the web: who queued the bisection, or a moderator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from swingbot.core.access.roles import Person, Role, may
from swingbot.core.bisect.tell.logbook import Logbook
from swingbot.core.bisect.thresholds import HINT_LEAST, HINT_MOST
from swingbot.core.limits import WHY_CHARACTERS
from swingbot.core.model import ids
from swingbot.core.model.lookup import NotFound, missing
from swingbot.core.model.records import Bisection
from swingbot.core.model.statuses import RESUMABLE, SteerAct
from swingbot.core.patchset.bundle import SentCommits
from swingbot.service import limits
from swingbot.service.asked.asker import check_steerer, check_tree
from swingbot.service.asked.commits import asked_commits
from swingbot.service.asked.requested import AlreadyDone
from swingbot.service.kernel.variants import resolve_commit
from swingbot.service.ports import Git, RequestError
from swingbot.service.ports.access import Access
from swingbot.service.ports.bisections import BisectionPoint, Bisections
from swingbot.service.ports.steering import Steering
from swingbot.service.ports.transaction import OpenTransaction
from swingbot.service.ports.trees import Trees
from swingbot_jobs.printable import printable


def skip(
    transaction: OpenTransaction,
    git: Git,
    number: int,
    commits: Sequence[str],
    *,
    who: str | Person,
    why: str | None,
    undo: bool = False,
) -> list[str]:
    """Never measure these commits, or allow it again with `undo`; return their full names.

    The same again by the same person is not recorded.
    Raises NotFound, RequestError, AlreadyDone, NotYours.
    """
    points = _named(transaction, git, number, commits, who)
    with transaction("steer bisection") as tx:
        known = _running(tx.bisections, number)
        wanted = sorted({idx for group in points for idx in group})
        _not_an_end(wanted, known, "skipped; start a bisection with other ends instead")
        if undo:
            wanted = [idx for idx in wanted if known[idx][2] is not None]
            if not wanted:
                raise AlreadyDone(
                    f"none of these commits is skipped in b{number}; `swingbot bisect log "
                    f"b{number}` lists its skips"
                )
        reason = tidy(why)
        words = None if undo else f"skipped by {name_of(who)}" + (f": {reason}" if reason else "")
        if all(known[idx].skipped == words for idx in wanted):
            return [known[idx].variant.commit for idx in wanted]
        tx.steering.set_skipped(number, wanted, words)
        check_number(tx.steering, number, who)
        act: SteerAct = "unskip" if undo else "skip"
        tx.steering.add(number, act, wanted, who=name_of(who), why=reason)
        return [known[idx][0].commit for idx in wanted]


def hint(
    transaction: OpenTransaction,
    git: Git,
    number: int,
    commits: Sequence[str],
    factor: float,
    *,
    who: str | Person,
    why: str | None,
) -> list[str]:
    """Multiply the prior weight of these commits by `factor`; return their full names.

    The last hint for a commit counts; the same again by the same person is not recorded.
    Raises NotFound, RequestError, NotYours.
    """
    if not (math.isfinite(factor) and HINT_LEAST <= factor <= HINT_MOST):
        raise RequestError(
            f"--factor must be between {HINT_LEAST:g} and {HINT_MOST:g}, got {factor:g}; to "
            "exclude a commit, use skip"
        )
    points = _named(transaction, git, number, commits, who)
    with transaction("steer bisection") as tx:
        known = _running(tx.bisections, number)
        wanted = sorted({idx for group in points for idx in group})
        if 0 in wanted:
            raise RequestError(
                f"{known[0][0].commit[:12]} is the good end and cannot be the culprit; hint "
                "at a later commit"
            )
        hinted = {
            idx: (one.factor, one.who)
            for one in tx.steering.all(number)
            if one.act == "hint"
            for idx in one.points
        }
        if all(hinted.get(idx) == (factor, name_of(who)) for idx in wanted):
            return [known[idx].variant.commit for idx in wanted]
        tx.steering.set_hint(number, wanted, factor)
        check_number(tx.steering, number, who)
        tx.steering.add(number, "hint", wanted, who=name_of(who), why=tidy(why), factor=factor)
        return [known[idx][0].commit for idx in wanted]


def logbook(transaction: OpenTransaction, number: int) -> Logbook:
    """Return everything that happened in a bisection. Raises NotFound."""
    with transaction("read journal") as tx:
        bisection = known_bisection(tx.bisections, number)
        points, above = tx.bisections.points(number), tx.bisections.parent_of(number)
        asked, ended, reason = tx.bisections.life_of(number)
        return Logbook(
            head={
                "bisection": ids.show("bisection", number),
                "tree": tx.trees.get(bisection.tree).name,
                "good": bisection.good,
                "bad": bisection.bad,
                "testbox": bisection.testbox,
                "unit_job": bisection.unit_job,
                "metric": bisection.metric,
                "origin": bisection.origin,
                "asked": asked,
                **(
                    {"parent": ids.show("bisection", above[0]), "merged": above[1]} if above else {}
                ),
            },
            commits=[(variant.commit, variant.subject) for variant, _, _ in points],
            steps=tx.steering.steps(number),
            steers=[
                {
                    "act": s.act,
                    "points": list(s.points),
                    "factor": s.factor,
                    "boots": s.boots,
                    "why": s.why,
                    "who": s.who,
                    "at": s.at,
                }
                for s in tx.steering.all(number)
            ],
            end={"status": bisection.status, "reason": reason, "at": ended}
            if ended is not None
            else None,
        )


Points = Sequence[BisectionPoint]


def check_may_steer(
    access: Access, trees: Trees, bisection: Bisection, who: str | Person, act: str
) -> None:
    """Raise NotYours unless an operator, or who queued the bisection, or a moderator asks."""
    if isinstance(who, Person):
        check_tree(who, trees.get(bisection.tree).name)
        check_steerer(access, ids.show("bisection", bisection.id), who, act)


def name_of(who: str | Person) -> str:
    """Return the name that is recorded."""
    return who.who if isinstance(who, Person) else who


def check_number(steering: Steering, number: int, who: str | Person) -> None:
    """Raise RequestError if a submitter has steered a bisection too often."""
    if isinstance(who, str) or may(who.role, Role.MODERATOR):
        return
    if len(steering.all(number)) >= limits.WEB_STEERS:
        raise RequestError(
            f"b{number} was steered {limits.WEB_STEERS} times already; only a moderator may steer"
            " it further"
        )


def _named(
    transaction: OpenTransaction,
    git: Git,
    number: int,
    commits: Sequence[str],
    who: str | Person,
) -> list[list[int]]:
    """Return the points that each argument names: a commit, or A..B for the commits after A up to
    and including B."""
    with transaction("find commits") as tx:
        bisection, points = known_bisection(tx.bisections, number), tx.bisections.points(number)
        tree = tx.trees.get(bisection.tree)
        check_may_steer(tx.access, tx.trees, bisection, who, "steer")
    if not commits:
        raise RequestError("name at least one commit")
    index = {variant.commit: idx for idx, (variant, _, _) in enumerate(points)}

    def one(ref: str) -> int:
        matches = [
            idx for commit, idx in index.items() if len(ref) >= 4 and commit.startswith(ref.lower())
        ]
        if len(matches) > 1:
            raise RequestError(
                f"{ref!r} is the prefix of {len(matches)} commits of b{number}; give more digits"
            )
        if matches:
            return matches[0]
        if isinstance(who, Person):
            commit = asked_commits(git, tree, [ref], who, SentCommits())[0][ref]
        else:
            commit = resolve_commit(git, tree, ref)
        if commit not in index:
            raise RequestError(
                f"{ref} ({commit[:12]}) is not one of the {len(points)} commits of b{number}; "
                f"`swingbot show b{number}` lists its commits"
            )
        return index[commit]

    groups = []
    for word in commits:
        low, dots, high = word.partition("..")
        if not dots:
            groups.append([one(word)])
            continue
        first, last = one(low), one(high)
        if first >= last:
            raise RequestError(
                f"{word}: {low} does not come before {high}; A..B means the commits after A "
                "up to and including B"
            )
        groups.append(list(range(first + 1, last + 1)))
    return groups


def known_bisection(bisections: Bisections, number: int) -> Bisection:
    """Return the bisection. Raises NotFound."""
    bisection = bisections.get(number)
    if bisection is None:
        raise NotFound(missing("bisection", number))
    return bisection


def _running(bisections: Bisections, number: int) -> Points:
    bisection = known_bisection(bisections, number)
    if bisection.status != "running":
        more = (
            f"; `swingbot bisect resume b{number} --boots N` resumes it"
            if bisection.status in RESUMABLE
            else ""
        )
        raise RequestError(f"b{number} has ended ({bisection.status}) and cannot be steered{more}")
    return bisections.points(number)


def _not_an_end(wanted: Sequence[int], points: Points, words: str) -> None:
    for end, name in ((0, "good"), (len(points) - 1, "bad")):
        if end in wanted:
            raise RequestError(
                f"{points[end][0].commit[:12]} is the {name} end: it cannot be {words}"
            )


def tidy(why: str | None) -> str | None:
    """Return `why` as one line of printable text, or None if it is empty.

    Raises RequestError if it is too long.
    """
    line = " ".join(printable(why or "", " ").split())
    if len(line) > WHY_CHARACTERS:
        raise RequestError(f"--why is longer than {WHY_CHARACTERS} characters")
    return line or None
