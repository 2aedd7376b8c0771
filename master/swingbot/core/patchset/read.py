"""Read files into one series."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from swingbot.core import limits
from swingbot.core.patchset.diff import diff_of
from swingbot.core.patchset.model import (
    OmittedMail,
    PatchFile,
    PatchSeries,
    PatchSource,
    SeriesError,
    SeriesPatch,
)
from swingbot.core.patchset.patch_mail import PatchMail, message_of, read_letters
from swingbot.core.patchset.posting import in_order, posting_of


@dataclass(frozen=True, slots=True)
class _ParsedSource:
    """The patches of a source's posting, each with the name of its file, and what is left out."""

    source: PatchSource
    patches: list[tuple[PatchMail, str]]
    left_out: list[OmittedMail]

    @property
    def single(self) -> bool:
        """Whether it has at most one patch. Adjacent sources like this form one series."""
        return not self.source.ordered and len(self.patches) <= 1


def read_series(sources: Sequence[PatchSource], *, stack: bool = False) -> PatchSeries:
    """Return the patches of all `sources`, in order, each source in the order of its series.

    Sources of one patch each form one series; without sources, the series is empty. A `stack` may
    be some numbered patches of a series, if each is a source of its own. Raises SeriesError, whose
    message names the file.
    """
    if not sources:
        return PatchSeries(patches=())
    total = sum(len(file.data) for source in sources for file in source.files)
    if total > limits.SERIES_BYTES:
        raise SeriesError(
            f"the patches have {total >> 20} MiB; the maximum is {limits.SERIES_BYTES >> 20} MiB"
        )
    patches: list[SeriesPatch] = []
    left_out: list[OmittedMail] = []
    notes: list[str] = []
    for group in _groups([_read(source) for source in sources]):
        ordered, remarks = _ordered(group, stack=stack)
        left_out += (omitted for one in group for omitted in one.left_out)
        notes += remarks
        for letter, name in ordered:
            patches.append(_patch(len(patches) + 1, letter, name))
            if len(patches) > limits.SERIES_PATCHES:
                raise SeriesError(
                    f"there are more than {limits.SERIES_PATCHES} patches; fetch them as a branch"
                )
    if not patches:
        names = ", ".join(source.name for source in sources[:3])
        raise SeriesError(
            f"{names}: no patch in it: no mail or file has a diff{_besides(left_out)}"
        )
    return PatchSeries(patches=tuple(patches), left_out=tuple(left_out), notes=tuple(notes))


def one_file(name: str, data: bytes) -> PatchSource:
    return PatchSource(name=name, files=(PatchFile(name=name, data=data),))


def read_file(name: str, data: bytes, *, stack: bool = False) -> PatchSeries:
    """Return the series in one file. Raises SeriesError."""
    return read_series([one_file(name, data)], stack=stack)


def _read(source: PatchSource) -> _ParsedSource:
    letters = list(_letters(source))
    ignored = [
        OmittedMail(subject=name, reason="not a .patch, .diff or .eml file")
        for name in source.ignored
    ]
    if source.ordered:
        for letter, name in letters:
            if not letter.has_diff:
                why = letter.problem or "it has no diff"
                raise SeriesError(f"{name}: {why}; remove it from the `series` file")
        return _ParsedSource(source, letters, ignored)
    names = {id(letter): name for letter, name in letters}
    try:
        patches, left_out = posting_of([letter for letter, _ in letters])
    except SeriesError as error:
        raise SeriesError(f"{source.name}: {error}") from None
    return _ParsedSource(source, [(one, names[id(one)]) for one in patches], left_out + ignored)


def _letters(source: PatchSource) -> Iterator[tuple[PatchMail, str]]:
    for file in source.files:
        try:
            letters = read_letters(file.data)
            if not any(one.is_mail or one.has_diff or one.problem for one in letters):
                raise SeriesError("it has no diff; write patches with `git format-patch`")
        except SeriesError as error:
            raise SeriesError(f"{file.name}: {error}") from None
        yield from ((letter, file.name) for letter in letters)


def _groups(read: Sequence[_ParsedSource]) -> Iterator[list[_ParsedSource]]:
    for single, group in groupby(read, key=lambda one: one.single):
        if single:
            yield list(group)
        else:
            yield from ([one] for one in group)


def _ordered(
    group: Sequence[_ParsedSource], *, stack: bool
) -> tuple[list[tuple[PatchMail, str]], list[str]]:
    patches = [pair for one in group for pair in one.patches]
    if any(one.source.ordered for one in group):
        return patches, []
    names = {id(letter): name for letter, name in patches}
    try:
        picked = stack and all(one.single for one in group)
        ordered, notes = in_order([letter for letter, _ in patches], picked=picked)
    except SeriesError as error:
        files = ", ".join(one.source.name for one in group[:3])
        besides = _besides([omitted for one in group for omitted in one.left_out])
        raise SeriesError(f"{files}: {error}{besides}") from None
    return [(letter, names[id(letter)]) for letter in ordered], notes


def _besides(left_out: Sequence[OmittedMail]) -> str:
    more = f" and {len(left_out) - 3} more" if len(left_out) > 3 else ""
    return f"; left out: {', '.join(map(str, left_out[:3]))}{more}" if left_out else ""


def _patch(number: int, letter: PatchMail, name: str) -> SeriesPatch:
    try:
        diff = diff_of(letter.rest)
        if not diff:
            raise SeriesError("its diff contains no files")
        stem = name.rpartition("/")[2].removesuffix(".patch").removesuffix(".diff")
        subject, message = message_of(letter, stem)
    except SeriesError as error:
        raise SeriesError(f"{name}: patch {number} ({letter.label}): {error}") from None
    return SeriesPatch(
        number=number,
        subject=subject,
        author=letter.author,
        date=letter.date,
        message_id=letter.message_id,
        message=message,
        diff=diff,
    )
