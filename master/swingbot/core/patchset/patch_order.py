"""Select the patches among the mails and sort them, by subjects such as `[PATCH v3 2/7]`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from swingbot.core.patchset.model import OmittedMail, SeriesError
from swingbot.core.patchset.patch_mail import PatchMail

_MOST_NAMED = 10  # maximum missing patches listed in an error


def choose(
    letters: Sequence[PatchMail], *, picked: bool = False
) -> tuple[list[PatchMail], list[OmittedMail]]:
    """Return the patches in the order in which they apply, and the omitted mails.

    Patches that are all numbered are sorted by number; others stay in mailbox order. Of a series
    all patches must be there, unless some were `picked`. Raises SeriesError.
    """
    own = [letter for letter in letters if is_patch(letter) and not letter.tagged.reply]
    answers = [letter for letter in letters if is_patch(letter) and letter.tagged.reply]
    patches = own or answers
    taken = {id(letter) for letter in patches}
    left_out = [_left_out(letter) for letter in letters if id(letter) not in taken]
    return _in_order(patches, picked), left_out


def is_patch(letter: PatchMail) -> bool:
    """Return True if there is a diff to apply.

    A cover letter may contain a diff between two versions of its series.
    """
    return letter.has_diff and letter.tagged.number != 0


def _left_out(letter: PatchMail) -> OmittedMail:
    tagged = letter.tagged
    if tagged.reply:
        reason = "reply; the diff in it is not applied" if letter.has_diff else "reply"
    elif tagged.number:
        raise SeriesError(_without_diff(letter))
    elif not letter.is_mail:
        reason = "text, not a mail"
    elif tagged.number is None and letter.answers:
        reason = "reply"
    else:
        reason = "cover letter"
    return OmittedMail(subject=letter.label, reason=reason)


def _without_diff(letter: PatchMail) -> str:
    sent = "it was sent as HTML; " if letter.html and not letter.body else ""
    return (
        f"patch {letter.tagged.number}/{letter.tagged.count} ({letter.label}) has no diff;"
        f" {sent}write it again with `git format-patch`"
    )


def _in_order(patches: Sequence[PatchMail], picked: bool) -> list[PatchMail]:
    numbered = [letter for letter in patches if letter.tagged.number is not None]
    _one_version(patches, numbered)
    if numbered:
        _complete(numbered, picked)
    if len(numbered) == len(patches):
        return sorted(patches, key=_number)
    if [_number(letter) for letter in numbered] != sorted(map(_number, numbered)):
        raise SeriesError(
            "some patches have a number and others do not, and the numbers are not in order;"
            " put the patches into a quilt directory, whose `series` file gives their order"
        )
    return list(patches)


def _number(letter: PatchMail) -> int:
    return letter.tagged.number or 0


def _one_version(patches: Sequence[PatchMail], numbered: Sequence[PatchMail]) -> None:
    versions = {letter.tagged.version for letter in numbered}
    titles: dict[str, set[int]] = {}
    for letter in patches:
        titles.setdefault(letter.tagged.title, set()).add(letter.tagged.version)
    found = max([versions, *titles.values()], key=len)
    if len(found) > 1:
        names = " and ".join(f"v{version}" for version in sorted(found)[:_MOST_NAMED])
        raise SeriesError(f"it has patches of {names} of a series; give only one version")


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
        subjects = ", ".join(f"{one.label!r}" for one in numbered if _number(one) == twice[0])
        raise SeriesError(
            f"patch {twice[0]}/{count} occurs {seen[twice[0]]} times: {subjects[:400]}"
        )
    if max(seen) > count:
        raise SeriesError(f"patch {max(seen)}/{count} has a number above the series' count")
    missing = [number for number in range(1, count + 1) if number not in seen]
    if missing and not picked:
        names = ", ".join(f"{number}/{count}" for number in missing[:_MOST_NAMED])
        more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
        verb = "is" if len(missing) == 1 else "are"
        raise SeriesError(
            f"patch {names}{more} {verb} missing; give the whole series,"
            " or remove the numbers from the subjects to apply only these patches"
        )
