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
from swingbot.core.patchset.patch_order import choose, is_patch


@dataclass(frozen=True, slots=True)
class _ParsedSource:
    """A source with the mails of its files, each with the name of its file."""

    source: PatchSource
    letters: tuple[tuple[PatchMail, str], ...]

    @property
    def single(self) -> bool:
        """Whether it has at most one patch. Adjacent sources like this form one series."""
        return not self.source.ordered and sum(is_patch(one) for one, _ in self.letters) <= 1


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
    for group in _groups([_read(source) for source in sources]):
        chosen, others = _chosen(group, stack=stack)
        left_out += others
        for letter, name in chosen:
            patches.append(_patch(len(patches) + 1, letter, name))
            if len(patches) > limits.SERIES_PATCHES:
                raise SeriesError(
                    f"there are more than {limits.SERIES_PATCHES} patches; fetch them as a branch"
                )
    if not patches:
        names = ", ".join(source.name for source in sources[:3])
        raise SeriesError(f"{names}: no patch in it: no mail or file has a diff")
    return PatchSeries(patches=tuple(patches), left_out=tuple(left_out))


def read_file(name: str, data: bytes, *, stack: bool = False) -> PatchSeries:
    """Return the series in one file. Raises SeriesError."""
    source = PatchSource(name=name, files=(PatchFile(name=name, data=data),))
    return read_series([source], stack=stack)


def _read(source: PatchSource) -> _ParsedSource:
    return _ParsedSource(source, tuple(_letters(source)))


def _letters(source: PatchSource) -> Iterator[tuple[PatchMail, str]]:
    for file in source.files:
        try:
            letters = list(read_letters(file.data))
            if not any(letter.is_mail or letter.has_diff for letter in letters):
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


def _chosen(
    group: Sequence[_ParsedSource], *, stack: bool
) -> tuple[list[tuple[PatchMail, str]], list[OmittedMail]]:
    ignored = [
        OmittedMail(subject=name, reason="not a .patch, .diff or .eml file")
        for one in group
        for name in one.source.ignored
    ]
    names = {id(letter): name for one in group for letter, name in one.letters}
    letters = [letter for one in group for letter, _ in one.letters]
    if any(one.source.ordered for one in group):
        _all_patches(group)
        return [(letter, names[id(letter)]) for letter in letters], ignored
    try:
        picked = stack and all(one.single for one in group)
        patches, left_out = choose(letters, picked=picked)
    except SeriesError as error:
        raise SeriesError(f"{', '.join(one.source.name for one in group[:3])}: {error}") from None
    return [(letter, names[id(letter)]) for letter in patches], [*left_out, *ignored]


def _all_patches(group: Sequence[_ParsedSource]) -> None:
    for one in group:
        for letter, name in one.letters:
            if not letter.has_diff:
                raise SeriesError(f"{name}: it has no diff; remove it from the `series` file")


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
