"""Find the posting among mails: the patches that one person sent, in one version.

Whatever answers it is left out: reviews, ideas of others, and patches that its author wrote later
to try something. Versions are never applied one on the other: which one is meant is a question.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Sequence
from typing import Final

from swingbot.core.patchset.model import OmittedMail, SeriesError
from swingbot.core.patchset.patch_mail import PatchMail
from swingbot.core.text.plain import cut

_MOST_NAMED: Final = 10  # maximum missing patches listed in an error


def posting_of(letters: Sequence[PatchMail]) -> tuple[list[PatchMail], list[OmittedMail]]:
    """Return the patches of the posting, in the order of the mails, and what is left out.

    Without a posting, the only reply that has a diff is one. Raises SeriesError.
    """
    patches = [letter for letter in letters if letter.is_patch and not letter.reply]
    if any(letter.tagged.patch and letter.parents for letter in patches):  # to a report with a diff
        patches = [letter for letter in patches if letter.tagged.patch or not letter.poster]
    patches = patches or _of_a_reply(letters)
    chosen = _posting(letters, patches) if patches else []
    for letter in chosen or [one for one in letters if not one.reply] or letters:
        if letter.problem:
            raise SeriesError(f"{letter.problem} ({letter.label})")
    for letter in chosen:
        if not letter.has_diff:
            raise SeriesError(_without_diff(letter))
    applied, taken = set(map(_copy, chosen)), set(map(id, chosen))
    return chosen, [
        OmittedMail(subject=one.label, reason=_reason(one, applied), author=one.author)
        for one in letters
        if id(one) not in taken
    ]


def in_order(
    patches: Sequence[PatchMail], *, picked: bool = False
) -> tuple[list[PatchMail], list[str]]:
    """Return the patches in the order in which they apply, and remarks.

    Patches that are all numbered are sorted by number; others stay in the order of the mails. Of a
    series all patches must be there, unless some were `picked`. Raises SeriesError.
    """
    numbered = [letter for letter in patches if letter.tagged.number is not None]
    _one_version({"": numbered, **_by_title(patches)})
    if numbered:
        _complete(numbered, picked)
    if len(numbered) < len(patches):
        if [_number(letter) for letter in numbered] != sorted(map(_number, numbered)):
            raise SeriesError(
                "some patches have a number and others do not, and the numbers are not in order;"
                " put the patches into a quilt directory, whose `series` file gives their order"
            )
        return list(patches), []
    ordered = sorted(patches, key=_number)
    return ordered, [
        f"{letter.label} was added to a series of {letter.tagged.count}"
        for letter in ordered
        if _number(letter) > (letter.tagged.count or 0)
    ]


def _of_a_reply(letters: Sequence[PatchMail]) -> list[PatchMail]:
    if any(letter.tagged.number is not None and not letter.reply for letter in letters):
        return []
    patches = [letter for letter in letters if letter.is_patch]
    if len({id(letter.top or letter) for letter in patches}) > 1:
        raise SeriesError(
            f"it has no posting, and several replies with a diff: {_names(patches)};"
            " give a file with only one of them"
        )
    return patches


def _posting(letters: Sequence[PatchMail], patches: Sequence[PatchMail]) -> list[PatchMail]:
    begun = [one for one in letters if one.tagged.number is not None and not one.reply] or patches
    people = set[str]().union(*map(_person, [x for x in begun if not x.parents] or begun[:1]))
    covers = {one.message_id for one in begun if one.tagged.number == 0}
    own = [one for one in patches if not one.parents or not people or _person(one) & people]
    missing = {*range(1, max(one.tagged.count or 0 for one in begun) + 1)} - set(map(_number, own))
    # Patches of a series may come from their authors.
    own += [x for x in patches if _number(x) in missing and covers & set(x.parents[:1])]
    numbered = [one for one in own if one.tagged.number is not None]
    stated = [one for one in own if numbered and one.tagged.version > 1]
    _one_version({"": numbered + stated, **_by_title(patches)})
    if not numbered:
        _one_version(_by_person(one for one in own if not one.parents or one.tagged.version > 1))
        first = _first_in_thread(letters, own)
        again = [x for x in own if x.tagged.patch and x.parents and _copy(x) in map(_copy, first)]
        return _latest([*first, *(x for x in again if all(x is not one for one in first))])
    alone = [one for one in own if one.tagged.number is None and not one.parents]
    if any(one.poster for one in alone):
        raise SeriesError(
            f"it has {_names(numbered[:1])} and patches without a number: {_names(alone)};"
            " give each posting in a file of its own, in the order in which they apply"
        )
    return _latest([one for one in own if not one.parents or one.tagged.number is not None])


def _first_in_thread(letters: Sequence[PatchMail], patches: Sequence[PatchMail]) -> list[PatchMail]:
    """Return the patches that answer nothing or, without these, the only one that answers no other
    patch.
    """
    if first := [letter for letter in patches if not letter.parents]:
        return first
    answers: dict[str, list[PatchMail]] = defaultdict(list)
    for letter in letters:
        for parent in letter.parents:
            answers[parent].append(letter)
    ids, below = [letter.message_id for letter in patches], set[int]()
    while ids:
        for letter in answers.pop(ids.pop() or "", ()):
            below.add(id(letter))
            ids.append(letter.message_id)
    first = [letter for letter in patches if id(letter) not in below]
    if len({id(letter.top or letter) for letter in first}) != 1:
        raise SeriesError(
            f"it has several patches that answer mails: {_names(first or patches)};"
            " give a file with only the patches to apply"
        )
    return first


def _latest(patches: Sequence[PatchMail]) -> list[PatchMail]:
    """Return each patch once: of copies, and of one that was sent again, the last.

    Raises SeriesError for patches with one title that differ.
    """
    copies: dict[object, list[PatchMail]] = defaultdict(list)
    for letter in patches:
        title = letter.tagged.title.casefold() if letter.poster else id(letter)
        copies[letter.tagged.number or title].append(letter)
    dropped: set[int] = set()
    for key, group in copies.items():
        sent = [one for one in group if one.has_diff or one.problem] or group
        last = ([one for one in sent if one.tagged.again] or sent)[-1]
        if last.tagged.again or all(_same(one, last) for one in sent):
            dropped |= {id(one) for one in group if one is not last}
        elif isinstance(key, str):
            raise SeriesError(f"it has several patches {_names(group)}; give only one of them")
    return [letter for letter in patches if id(letter) not in dropped]


def _same(one: PatchMail, other: PatchMail) -> bool:
    """Return True for copies of a mail that came by several lists, or of its diff."""
    if one.message_id is not None and one.message_id == other.message_id:
        return True
    return one.rest.rstrip() == other.rest.rstrip()


def _person(letter: PatchMail) -> set[str]:
    """Return the name and the address of who sent a mail; empty if unknown."""
    name, _, address = letter.poster.casefold().rpartition(" ")
    return {name, address} if letter.poster else set()


def _copy(letter: PatchMail) -> tuple[int | None, str]:
    return letter.tagged.number, letter.tagged.title.casefold()


def _reason(letter: PatchMail, applied: Container[object]) -> str:
    """Return why a mail is left out."""
    tagged = letter.tagged
    diff = letter.has_diff and tagged.number != 0
    if letter.reply:
        return "reply; the diff in it is not applied" if diff else "reply"
    if letter.html and not letter.body:
        return "HTML, which is not read"
    if not letter.is_mail:
        return "text, not a mail"
    if diff:
        return "another copy is applied" if _copy(letter) in applied else "it answers the posting"
    return "reply" if tagged.number != 0 and letter.parents else "cover letter"


def _without_diff(letter: PatchMail) -> str:
    sent = "it was sent as HTML; " if letter.html and not letter.body else ""
    return (
        f"patch {letter.tagged.number}/{letter.tagged.count} ({letter.label}) has no diff;"
        f" {sent}write it again with `git format-patch`"
    )


def _names(patches: Sequence[PatchMail]) -> str:
    more = f" and {len(patches) - 3} more" if len(patches) > 3 else ""
    return ", ".join(f"{cut(one.label, 60)} by {cut(one.author, 60)}" for one in patches[:3]) + more


def _number(letter: PatchMail) -> int:
    return letter.tagged.number or 0


def _by_title(patches: Iterable[PatchMail]) -> dict[str, list[PatchMail]]:
    titles: dict[str, list[PatchMail]] = defaultdict(list)
    for letter in patches:
        if letter.has_diff:
            titles[letter.tagged.title.casefold()].append(letter)
    return titles


def _by_person(patches: Iterable[PatchMail]) -> dict[str, list[PatchMail]]:
    people: dict[str, list[PatchMail]] = defaultdict(list)
    for letter in patches:
        for key in _person(letter):
            people[key].append(letter)
    return people


def _one_version(groups: dict[str, list[PatchMail]]) -> None:
    """Raise SeriesError if patches of a group have several versions."""
    for group in groups.values():
        versions = sorted({letter.tagged.version for letter in group})
        if len(versions) > 1:
            names = " and ".join(f"v{version}" for version in versions[:_MOST_NAMED])
            raise SeriesError(
                f"it has patches of {names} of a series ({_names(group)}); give only one version"
            )


def _complete(numbered: Sequence[PatchMail], picked: bool) -> None:
    counts = sorted({letter.tagged.count or 0 for letter in numbered})
    if len(counts) > 1:
        of = " and ".join(str(count) for count in counts[:_MOST_NAMED])
        raise SeriesError(
            f"it has patches of several series (of {of} patches);"
            " give each series in a separate file, in the order in which they apply"
        )
    count = counts[0]
    seen = Counter(map(_number, numbered))
    twice = sorted(number for number, times in seen.items() if times > 1)
    if twice:
        same = [one for one in numbered if _number(one) == twice[0]]
        raise SeriesError(f"patch {twice[0]}/{count} occurs {len(same)} times: {_names(same)}")
    missing = [number for number in range(1, max(count, *seen) + 1) if number not in seen]
    if missing and not picked:
        names = ", ".join(f"{number}/{count}" for number in missing[:_MOST_NAMED])
        more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
        verb = "is" if len(missing) == 1 else "are"
        raise SeriesError(
            f"patch {names}{more} {verb} missing; give the whole series,"
            " or remove the numbers from the subjects to apply only these patches"
        )
