"""Keep one incident per culprit: attach the culprits that bisections find, and apply what people
decide about incidents.

Repeating an act changes nothing. Each change is recorded with who, when and why (`incident_event`),
and unsent mails are withdrawn if they no longer match the incident. Nothing is ever sent twice: a
merge moves sightings, never reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from swingbot.core.incident.decide import (
    ACTS,
    KINDS_OF_ITS_END,
    Act,
    IncidentDecision,
    InvalidState,
    decide,
    tidy,
)
from swingbot.core.incident.match import known_as
from swingbot.core.incident.model import Incident, Sighting
from swingbot.core.model import ids
from swingbot.core.model.lookup import NotFound, missing
from swingbot.core.model.records import Bisection, Variant
from swingbot.core.model.statuses import ReportKind
from swingbot.service.ports import Git, GitError, RequestError, Transaction
from swingbot.service.ports.incidents import Incidents
from swingbot.service.ports.reports import Reports
from swingbot.service.ports.sightings import Sightings
from swingbot.service.ports.transaction import OpenTransaction
from swingbot.service.ports.trees import Trees

OURSELVES: Final = "swingbot"
_WITHDRAWN: Final = {
    "close": "the incident was closed",
    "expected": "the change is expected",
    "invalid": "the incident is invalid",
    "reopen": "the incident is open again",
}


def note_culprit(
    git: Git,
    trees: Trees,
    sightings: Sightings,
    incidents: Incidents,
    bisection: Bisection,
    culprit: Variant,
) -> int:
    """Attach a culprit that `bisection` named to its incident, and return the number of that
    incident. A new incident is created if none has the same commit or patch.
    """
    patch_id = _patch_id(git, culprit.commit)
    known = known_as(
        bisection.tree, culprit.commit, patch_id, sightings.like(culprit.commit, patch_id)
    )
    number = (
        _standing(incidents, known)
        if known is not None
        else incidents.add(bisection.tree, culprit.id)
    )
    if sightings.add(number, bisection.id, culprit.id, patch_id):
        detail = {
            "bisection": ids.show("bisection", bisection.id),
            "commit": culprit.commit,
            "tree": trees.get(bisection.tree).name,
        }
        incidents.add_event(number, "opened" if known is None else "seen", OURSELVES, None, detail)
    return number


def _standing(incidents: Incidents, number: int) -> int:
    """Return the number of the incident, or of the one that it is merged into now."""
    incident = known_incident(incidents, number)
    return number if incident.merged_into is None else _standing(incidents, incident.merged_into)


def identify_sightings(git: Git, sightings: Sightings) -> None:
    """Compute missing patch-ids of sightings: those recorded by versions without patch-ids, or
    while the mirror was unreadable.
    """
    for sighting in sightings.to_identify():
        patch_id = _patch_id(git, sighting.commit)
        if patch_id is not None:
            sightings.identify(sighting.id, patch_id)


def _patch_id(git: Git, commit: str) -> str | None:
    """Return the patch-id of a commit, "" if it has none, or None if git failed."""
    try:
        return git.patch_ids([commit]).get(commit, "")
    except GitError:
        return None


def carry_out(
    transaction: OpenTransaction, git: Git, number: int, decision: IncidentDecision, who: str
) -> Incident:
    """Apply a person's decision; return the incident to look at.

    Raises NotFound, RequestError, BadId.
    """
    reason = decision.reason
    if decision.act == "merge":
        others = [ids.read(one, "incident")[1] for one in decision.others]
        if not others:
            raise RequestError("name the incidents that are merged into it")
        return merge(transaction, others, number, who=who, reason=reason)
    if decision.act == "split":
        out = decision.bisection
        bisection = ids.read(out, "bisection")[1] if out else None
        return split(transaction, number, who=who, reason=reason, bisection=bisection)
    act = next(act for act in ACTS if act == decision.act)
    return say(
        transaction, git, number, act, who=who, reason=reason, commit=decision.commit or None
    )


def say(
    transaction: OpenTransaction,
    git: Git,
    number: int,
    act: Act,
    *,
    who: str,
    reason: str | None,
    commit: str | None = None,
) -> Incident:
    """Apply a person's act to an incident and return the updated incident.

    `commit` is the one given to `fixed-by`. Raises RequestError.
    """
    with transaction("decide about incident") as tx:
        before = known_incident(tx.incidents, number)
        fix = _fix(git, tx.trees, tx.sightings, before, commit) if act == "fixed-by" else None
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
                same_fix=_waits_for(tx.incidents, before, fix),
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
                _withdraw(
                    tx.incidents,
                    tx.reports,
                    number,
                    f"{_WITHDRAWN[act]}{f': {why}' if why else ''}",
                    *kinds,
                )
        return known_incident(tx.incidents, number)


def _fix(git: Git, trees: Trees, sightings: Sightings, incident: Incident, ref: str | None) -> str:
    """Return the full name of the fix: a commit of one of the trees with the culprit, or 40 digits
    of a commit that no tree has yet.
    """
    if not ref:
        raise RequestError("name the commit that fixes it")
    problems = []
    for tree in dict.fromkeys(
        [incident.tree, *(sighting.tree for sighting in sightings.of_incident(incident.id))]
    ):
        try:
            return git.resolve(trees.get(tree).name, ref)
        except GitError as error:
            problems.append(str(error))
    if len(ref) == 40 and not set(ref) - set("0123456789abcdef"):
        return ref
    raise RequestError(f"{problems[0]}; give all 40 digits of a commit that is not in a tree yet")


def _waits_for(incidents: Incidents, incident: Incident, fix: str | None) -> bool:
    """Return whether `fix` is the recorded fix, checked or still to be checked.

    After a negative check it may be checked again at a later tip.
    """
    return (
        fix is not None
        and fix == incident.fixed_by
        and (incident.status == "fixed" or not fix_answered(incidents, incident))
    )


def fix_answered(incidents: Incidents, incident: Incident) -> bool:
    """Return whether the check of the fix has an answer."""
    last = incidents.last_event(incident.id, "checked")
    return (
        last is not None
        and incident.fix_check is not None
        and last[1].get("comparison") == ids.show("comparison", incident.fix_check)
    )


def _withdraw(
    incidents: Incidents,
    reports: Reports,
    number: int,
    why: str,
    *kinds: ReportKind,
    queued: bool = True,
) -> list[int]:
    withdrawn = reports.withdraw(number, why, *kinds, queued=queued)
    if withdrawn:
        incidents.add_event(
            number,
            "withdrawn",
            OURSELVES,
            why,
            {"reports": [ids.show("report", report) for report in withdrawn]},
        )
    return withdrawn


def merge(
    transaction: OpenTransaction, numbers: Sequence[int], into: int, *, who: str, reason: str | None
) -> Incident:
    """Merge incidents into `into`, which gets their sightings. Their mails stay theirs; if only
    they had a mail sent, its thread is continued.

    Merging an incident again into the same one changes nothing. Raises RequestError.
    """
    with transaction("merge incidents") as tx:
        goal = known_incident(tx.incidents, into)
        if goal.merged_into is not None:
            raise RequestError(
                f"{ids.show('incident', into)} was itself merged into "
                f"{ids.show('incident', goal.merged_into)}; merge into that one, or split it first"
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
            f"{name} is already merged into {ids.show('incident', one.merged_into)}; `swingbot "
            f"incident split {name}` undoes that"
        )
    moved = tx.sightings.of_incident(one.id)
    _withdraw(tx.incidents, tx.reports, one.id, f"merged into {other}")
    tx.incidents.set_status(one.id, "duplicate", goal.id)
    tx.sightings.move([sighting.id for sighting in moved], goal.id)
    detail = {"into": other, "was": one.status, "sightings": [sighting.id for sighting in moved]}
    tx.incidents.add_event(one.id, "merge", who, why, detail)
    tx.incidents.add_event(goal.id, "merge", who, why, {"from": name})
    if tx.reports.first_mail(goal.id) is not None:
        _withdraw(
            tx.incidents,
            tx.reports,
            goal.id,
            f"the first mail of {name} was sent; news follows in its thread",
            "first",
        )


def split(
    transaction: OpenTransaction,
    number: int,
    *,
    who: str,
    reason: str | None,
    bisection: int | None = None,
) -> Incident:
    """Undo the merge of an incident; or, with `bisection`, split off the sightings of that
    bisection.

    Returns the incident that is separate afterwards. Raises RequestError.
    """
    with transaction("split incident") as tx:
        one = known_incident(tx.incidents, number)
        return (
            _unmerge(tx.sightings, tx.incidents, one, who, _tidy(reason))
            if bisection is None
            else _split(tx.sightings, tx.incidents, one, bisection, who, _tidy(reason))
        )


def _unmerge(
    sightings: Sightings, incidents: Incidents, one: Incident, who: str, why: str | None
) -> Incident:
    name = ids.show("incident", one.id)
    event = incidents.last_event(one.id, "merge")
    if one.merged_into is None:
        if event is not None and "into" in event[1]:
            return one  # it was merged once and already split again
        raise RequestError(
            f"{name} is not merged into another incident; `swingbot incident split {name} "
            "--bisection b2` splits off the culprits that b2 found"
        )
    current = {sighting.id for sighting in sightings.of_incident(one.merged_into)}
    detail: Any = event[1] if event is not None else {}
    back = [sighting for sighting in detail.get("sightings", []) if sighting in current]
    incidents.set_status(one.id, detail.get("was", "open"))
    sightings.move(back, one.id)
    incidents.add_event(one.id, "split", who, why, {"from": ids.show("incident", one.merged_into)})
    incidents.add_event(one.merged_into, "split", who, why, {"out": name})
    return known_incident(incidents, one.id)


def _split(
    sightings: Sightings,
    incidents: Incidents,
    one: Incident,
    bisection: int,
    who: str,
    why: str | None,
) -> Incident:
    name, of = ids.show("incident", one.id), ids.show("bisection", bisection)
    all_ = sightings.of_incident(one.id)
    culprits = {sighting.culprit for sighting in all_ if sighting.bisection == bisection}
    if not culprits:
        raise RequestError(
            f"{of} is not one of the bisections of {name}: "
            f"{', '.join(dict.fromkeys(ids.show('bisection', s.bisection) for s in all_))}"
        )
    out = [sighting for sighting in all_ if sighting.culprit in culprits]
    rest = [sighting for sighting in all_ if sighting.culprit not in culprits]
    if not rest:
        raise RequestError(
            f"all of {name} is about the commit that {of} found, and each commit has exactly one "
            "incident"
        )
    return _stand_alone(sightings, incidents, one, out, who, why)


def _stand_alone(
    sightings: Sightings,
    incidents: Incidents,
    one: Incident,
    out: Sequence[Sighting],
    who: str,
    why: str | None,
) -> Incident:
    """Return an incident of its own for `out`: the one that was merged before, else a new one."""
    culprit = out[0]
    older = incidents.of_culprit(culprit.tree, culprit.culprit)
    number = (
        older.id
        if older is not None and older.merged_into == one.id
        else incidents.add(culprit.tree, culprit.culprit)
    )
    if number == one.id:
        raise RequestError(
            f"{ids.show('incident', one.id)} is named after that commit; split off the commits of "
            "the other bisections instead"
        )
    incidents.set_status(number, "open")
    sightings.move([sighting.id for sighting in out], number)
    incidents.add_event(number, "split", who, why, {"from": ids.show("incident", one.id)})
    incidents.add_event(one.id, "split", who, why, {"out": ids.show("incident", number)})
    return known_incident(incidents, number)


def fold_sightings(tx: Transaction) -> None:
    """Withdraw a first mail that is held for approval and lacks newer sightings, so that it is
    drafted again. A mail that may be sent at any moment stays.
    """
    for number in dict.fromkeys(sighting.incident for sighting in tx.sightings.to_tell()):
        if any(
            state in ("draft", "held") and not withdrawn
            for _, state, withdrawn in tx.reports.of_incident(number, "first")
        ):
            _withdraw(
                tx.incidents,
                tx.reports,
                number,
                "there are new sightings of the same commit: the mail that replaces this one has "
                "them",
                "first",
                queued=False,
            )


def known_incident(incidents: Incidents, number: int) -> Incident:
    """Return the incident. Raises NotFound."""
    incident = incidents.get(number)
    if incident is None:
        raise NotFound(missing("incident", number))
    return incident


def _tidy(reason: str | None) -> str | None:
    try:
        return tidy(reason)
    except InvalidState as refused:
        raise RequestError(str(refused)) from None
