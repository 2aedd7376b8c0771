"""One incident per culprit: attach what a bisection found, and do what people say about incidents.

Whatever is said twice is done once. What changes is noted with who, when and why (`incident_event`), and mails that have not left are taken back where
the incident is no longer what they say. Nothing is ever sent twice: a merge moves sightings, never reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from swingbot.core.incident.decide import KINDS_OF_ITS_END, Act, InvalidState, decide, tidy
from swingbot.core.incident.match import known_as
from swingbot.core.incident.model import Incident, Sighting
from swingbot.core.model import ids
from swingbot.core.model.records import Bisection, Variant
from swingbot.core.model.statuses import ReportKind
from swingbot.service.ports import GitError, Lab, RequestError, Transaction
from swingbot.service.ports.incidents import Incidents

OURSELVES: Final = "swingbot"
_WITHDRAWN: Final = {
    "close": "the incident was closed",
    "expected": "the change is expected",
    "invalid": "the incident is invalid",
    "reopen": "the incident is open again",
}


def note_culprit(lab: Lab, tx: Transaction, bisection: Bisection, culprit: Variant) -> int:
    """The incident of a culprit that `bisection` named: the one that is known by the commit or its patch, else a new one."""
    patch_id = _patch_id(lab, culprit.commit)
    known = known_as(
        bisection.tree, culprit.commit, patch_id, tx.sightings.like(culprit.commit, patch_id)
    )
    number = (
        _standing(tx, known) if known is not None else tx.incidents.add(bisection.tree, culprit.id)
    )
    if tx.sightings.add(number, bisection.id, culprit.id, patch_id):
        detail = {
            "bisection": ids.show("bisection", bisection.id),
            "commit": culprit.commit,
            "tree": tx.trees.get(bisection.tree).name,
        }
        tx.incidents.add_event(
            number, "opened" if known is None else "seen", OURSELVES, None, detail
        )
    return number


def _standing(tx: Transaction, number: int) -> int:
    """The incident itself, or the one that it is merged into by now."""
    found = known_incident(tx.incidents, number)
    return number if found.merged_into is None else _standing(tx, found.merged_into)


def identify_sightings(lab: Lab, tx: Transaction) -> None:
    """Patch-ids of sightings that were noted without one: before there were any, or while the mirror could not be read."""
    for sighting in tx.sightings.to_identify():
        patch_id = _patch_id(lab, sighting.commit)
        if patch_id is not None:
            tx.sightings.identify(sighting.id, patch_id)


def _patch_id(lab: Lab, commit: str) -> str | None:
    """ "" for a commit that has none; None where git could not say."""
    try:
        return lab.git.patch_ids([commit]).get(commit, "")
    except GitError:
        return None


def say(
    lab: Lab, number: int, act: Act, *, who: str, reason: str | None, commit: str | None = None
) -> Incident:
    """Do what a person says about an incident; return it as it is then. `commit` is that of `fixed-by`. Raises RequestError."""
    with lab.transaction("decide about incident") as tx:
        before = known_incident(tx.incidents, number)
        fix = _fix(lab, tx, before, commit) if act == "fixed-by" else None
        try:
            why = tidy(reason)
            into = (
                ids.show("incident", before.merged_into) if before.merged_into is not None else None
            )
            done = decide(
                ids.show("incident", number),
                before.status,
                act,
                merged_into=into,
                same_fix=_waits_for(tx, before, fix),
            )
        except InvalidState as refused:
            raise RequestError(str(refused)) from None
        if done.changes:
            tx.incidents.set_status(number, done.status)
            tx.incidents.add_event(
                number, act, who, why, {"was": before.status} | ({"commit": fix} if fix else {})
            )
            if fix is not None:
                tx.incidents.set_fix(number, fix, None)
            if done.withdraw:
                kinds = KINDS_OF_ITS_END if act == "reopen" else ()
                _withdraw(tx, number, f"{_WITHDRAWN[act]}{f': {why}' if why else ''}", *kinds)
        return known_incident(tx.incidents, number)


def _fix(lab: Lab, tx: Transaction, incident: Incident, ref: str | None) -> str:
    """The fix in full: a commit of one of the trees in which the culprit was found, or 40 digits of one that no tree has yet."""
    if not ref:
        raise RequestError("name the commit that mends it")
    problems = []
    for tree in dict.fromkeys(
        [incident.tree, *(sighting.tree for sighting in tx.sightings.of_incident(incident.id))]
    ):
        try:
            return lab.git.resolve(tx.trees.get(tree).name, ref)
        except GitError as error:
            problems.append(str(error))
    if len(ref) == 40 and not set(ref) - set("0123456789abcdef"):
        return ref
    raise RequestError(
        f"{problems[0]}; a commit that is in no tree yet can be named by its 40 digits"
    )


def _waits_for(tx: Transaction, incident: Incident, fix: str | None) -> bool:
    """Whether that fix is what the incident is fixed by, or still has to be checked; once a check said no it may be checked again, at a later tip."""
    return (
        fix is not None
        and fix == incident.fixed_by
        and (incident.status == "fixed" or not fix_answered(tx.incidents, incident))
    )


def fix_answered(incidents: Incidents, incident: Incident) -> bool:
    """Whether the check of the fix has had its answer."""
    last = incidents.last_event(incident.id, "checked")
    return (
        last is not None
        and incident.fix_check is not None
        and last[1].get("comparison") == ids.show("comparison", incident.fix_check)
    )


def _withdraw(
    tx: Transaction, number: int, why: str, *kinds: ReportKind, queued: bool = True
) -> list[int]:
    gone = tx.reports.withdraw(number, why, *kinds, queued=queued)
    if gone:
        tx.incidents.add_event(
            number,
            "withdrawn",
            OURSELVES,
            why,
            {"reports": [ids.show("report", report) for report in gone]},
        )
    return gone


def merge(lab: Lab, numbers: Sequence[int], into: int, *, who: str, reason: str | None) -> Incident:
    """Make incidents duplicates of `into`, which gets their sightings. Their mails stay theirs: where only they had one sent, theirs is the thread.

    Merging what is merged there already changes nothing. Raises RequestError.
    """
    with lab.transaction("merge incidents") as tx:
        goal = known_incident(tx.incidents, into)
        if goal.merged_into is not None:
            raise RequestError(
                f"{ids.show('incident', into)} was itself merged into {ids.show('incident', goal.merged_into)}; merge into that one, or split it first"
            )
        for number in dict.fromkeys(numbers):
            _merge(tx, known_incident(tx.incidents, number), goal, who, _tidy(reason))
        return known_incident(tx.incidents, into)


def _merge(tx: Transaction, one: Incident, goal: Incident, who: str, why: str | None) -> None:
    name, other = ids.show("incident", one.id), ids.show("incident", goal.id)
    if one.id == goal.id:
        raise RequestError(f"{name} cannot be merged into itself; name two incidents")
    if one.merged_into == goal.id:
        return
    if one.merged_into is not None:
        raise RequestError(
            f"{name} was merged into {ids.show('incident', one.merged_into)} already; `swingbot incident split {name}` takes it out again"
        )
    moved = tx.sightings.of_incident(one.id)
    _withdraw(tx, one.id, f"merged into {other}")
    tx.incidents.set_status(one.id, "duplicate", goal.id)
    tx.sightings.move([sighting.id for sighting in moved], goal.id)
    detail = {"into": other, "was": one.status, "sightings": [sighting.id for sighting in moved]}
    tx.incidents.add_event(one.id, "merge", who, why, detail)
    tx.incidents.add_event(goal.id, "merge", who, why, {"from": name})
    if tx.reports.first_mail(goal.id) is not None:
        _withdraw(
            tx,
            goal.id,
            f"the first mail of {name} has left; what is new follows in its thread",
            "first",
        )


def split(
    lab: Lab, number: int, *, who: str, reason: str | None, bisection: int | None = None
) -> Incident:
    """Take a duplicate out of the incident that it was merged into; or, with `bisection`, what that one found out of an incident that has more.

    Returns the incident that stands on its own then. Raises RequestError.
    """
    with lab.transaction("split incident") as tx:
        one = known_incident(tx.incidents, number)
        return (
            _unmerge(tx, one, who, _tidy(reason))
            if bisection is None
            else _split(tx, one, bisection, who, _tidy(reason))
        )


def _unmerge(tx: Transaction, one: Incident, who: str, why: str | None) -> Incident:
    name = ids.show("incident", one.id)
    told = tx.incidents.last_event(one.id, "merge")
    if one.merged_into is None:
        if told is not None and "into" in told[1]:
            return one  # it was merged once and is out again
        raise RequestError(
            f"{name} was merged into no other incident; `swingbot incident split {name} --bisection b2` takes out what b2 found"
        )
    there = {sighting.id for sighting in tx.sightings.of_incident(one.merged_into)}
    detail: Any = told[1] if told is not None else {}
    back = [sighting for sighting in detail.get("sightings", []) if sighting in there]
    tx.incidents.set_status(one.id, detail.get("was", "open"))
    tx.sightings.move(back, one.id)
    tx.incidents.add_event(
        one.id, "split", who, why, {"from": ids.show("incident", one.merged_into)}
    )
    tx.incidents.add_event(one.merged_into, "split", who, why, {"out": name})
    return known_incident(tx.incidents, one.id)


def _split(tx: Transaction, one: Incident, bisection: int, who: str, why: str | None) -> Incident:
    name, of = ids.show("incident", one.id), ids.show("bisection", bisection)
    all_ = tx.sightings.of_incident(one.id)
    found = {sighting.culprit for sighting in all_ if sighting.bisection == bisection}
    if not found:
        raise RequestError(
            f"{of} is not one of the bisections of {name}: {', '.join(dict.fromkeys(ids.show('bisection', s.bisection) for s in all_))}"
        )
    out = [sighting for sighting in all_ if sighting.culprit in found]
    rest = [sighting for sighting in all_ if sighting.culprit not in found]
    if not rest:
        raise RequestError(
            f"all that {name} has is about the commit that {of} found, and one commit is one incident"
        )
    return _stand_alone(tx, one, out, who, why)


def _stand_alone(
    tx: Transaction, one: Incident, out: Sequence[Sighting], who: str, why: str | None
) -> Incident:
    """An incident of its own for `out`: the one that was merged here where there was one, else a new one."""
    culprit = out[0]
    older = tx.incidents.of_culprit(culprit.tree, culprit.culprit)
    number = (
        older.id
        if older is not None and older.merged_into == one.id
        else tx.incidents.add(culprit.tree, culprit.culprit)
    )
    if number == one.id:
        raise RequestError(
            f"{ids.show('incident', one.id)} is named after that commit; split off what the other bisections found instead"
        )
    tx.incidents.set_status(number, "open")
    tx.sightings.move([sighting.id for sighting in out], number)
    tx.incidents.add_event(number, "split", who, why, {"from": ids.show("incident", one.id)})
    tx.incidents.add_event(one.id, "split", who, why, {"out": ids.show("incident", number)})
    return known_incident(tx.incidents, number)


def fold_sightings(lab: Lab, tx: Transaction) -> None:
    """A first mail that still waits for a person, and does not tell all that is known by now, is written anew; one that may leave any moment is not."""
    for number in dict.fromkeys(sighting.incident for sighting in tx.sightings.to_tell()):
        if any(
            state in ("draft", "held") and not withdrawn
            for _, state, withdrawn in tx.reports.of_incident(number, "first")
        ):
            _withdraw(
                tx,
                number,
                "more was found of the same commit: it is told in the mail that takes this one's place",
                "first",
                queued=False,
            )


def known_incident(incidents: Incidents, number: int) -> Incident:
    """Raises RequestError if there is none."""
    found = incidents.get(number)
    if found is None:
        raise RequestError(
            f"there is no incident {ids.show('incident', number)}; `swingbot incident list` shows those there are"
        )
    return found


def _tidy(reason: str | None) -> str | None:
    try:
        return tidy(reason)
    except InvalidState as refused:
        raise RequestError(str(refused)) from None
