"""What a request says in JSON; that of a table, beyond the fields of a form.

`swingbot compare` sends it from another machine, scripts may; `/api/v1/openapi.json` describes it.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from swingbot.core.limits import ASKED_COMMITS, ROW_NAME_CHARACTERS, TABLE_ROWS, WHY_CHARACTERS
from swingbot.core.patchset.bundle import SentCommits, read_bundle
from swingbot.core.patchset.model import PatchFile, PatchSource
from swingbot.core.table.layout import Axis
from swingbot_jobs import codec
from swingbot_jobs.codec import (
    Sparse,
    Stated,
    at_least,
    at_most_characters,
    at_most_entries,
    one_of,
)

_COMMIT: Final = re.compile("[0-9a-f]{40}")
AXES: Final = ("compiler", "kconfig", "fragment", "layout", "cmdline", "sysctl")


def _is_base64(text: str) -> str | None:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return "is not base64"
    return None


# Each entry costs a search of the kernels, or a child that reads patches.
_FEW: Final = at_most_entries(TABLE_ROWS)


def _is_name(text: str) -> str | None:
    if len(text) <= ROW_NAME_CHARACTERS and text.isprintable():
        return None
    return f"must have at most {ROW_NAME_CHARACTERS} characters, all of them printable"


def _are_labels(values: Mapping[str, str]) -> str | None:
    wrong = filter(None, map(_is_name, values))
    return next((f"a label {why}" for why in wrong), None) or (
        "a label is empty" if "" in values else None
    )


def _are_commits(values: Mapping[str, str]) -> str | None:
    if not all(map(_COMMIT.fullmatch, values.values())):
        return "has a value that is not a full commit id of 40 hexadecimal digits"
    return _FEW(values) or _are_labels(values)


def _are_asked(commits: Collection[str]) -> str | None:
    if len(commits) > ASKED_COMMITS:
        return f"has {len(commits)} entries; at most {ASKED_COMMITS} are allowed"
    if not all(map(_COMMIT.fullmatch, commits)):
        return "has an entry that is not a full commit id of 40 hexadecimal digits"
    return None


def _are_names(commits: Collection[str]) -> str | None:
    if any(len(name) > ROW_NAME_CHARACTERS for name in commits):
        return f"has an entry of more than {ROW_NAME_CHARACTERS} characters"
    return _FEW(commits)


_SHORT: Final = at_most_characters(ROW_NAME_CHARACTERS)
_BASE64: Final = Stated(_is_base64, (("contentEncoding", "base64"),))
_NAME: Final = Stated(_is_name, (("maxLength", ROW_NAME_CHARACTERS),))
_NAMES: Final = Stated(
    _are_names,
    (
        ("maxItems", TABLE_ROWS),
        ("items", {"type": "string", "maxLength": ROW_NAME_CHARACTERS}),
    ),
)
_COMMITS: Final = Stated(
    _are_asked,
    (("maxItems", ASKED_COMMITS), ("items", {"type": "string", "pattern": "^[0-9a-f]{40}$"})),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCommits:
    """A question which of these commits the service has: for `tree`, in its branch."""

    commits: Annotated[tuple[str, ...], _COMMITS]
    tree: Annotated[Sparse[str | None], _SHORT] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedExtension:
    """More boots of each row of a table; `dry_run`: its plan and cost only.

    `from_boots`: boots of each row so far; a table that has others by now is not extended.
    """

    boots: Annotated[int, at_least(1)]
    from_boots: Sparse[int | None] = None
    dry_run: Sparse[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SentBisection:
    """A search for the commit of GOOD..BAD that changed `metric`; `dry_run`: plan and cost only.

    `mail` asks for a mail when it is over, to the address of the token.
    `job` names shipped jobs; without it, those of the tree are used. `set`, `commits` and `bundle`
    are those of a table.
    """

    tree: Annotated[str, _SHORT]
    range: Annotated[str, at_most_characters(2 * ROW_NAME_CHARACTERS)]
    metric: Annotated[str, _SHORT]
    unit_job: Annotated[Sparse[str | None], _SHORT] = None
    job: Annotated[Sparse[tuple[str, ...]], _FEW] = ()
    testbox: Annotated[Sparse[str | None], _SHORT] = None
    set: Sparse[Mapping[str, str]] = field(default_factory=dict)
    commits: Annotated[Sparse[Mapping[str, str]], _are_commits] = field(default_factory=dict)
    bundle: Annotated[Sparse[str], _BASE64] = ""
    mail: Sparse[bool] = False
    dry_run: Sparse[bool] = False

    def sent_commits(self) -> SentCommits:
        """Raises BadBundle."""
        return _sent(self.commits, self.bundle)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentResumption:
    """Up to `boots` more boots for a bisection; `dry_run`: its plan and cost only.

    `from_boots`: those that it requested so far; one that has others by now is not resumed.
    """

    boots: int
    from_boots: Sparse[int | None] = None
    why: Annotated[Sparse[str | None], at_most_characters(WHY_CHARACTERS)] = None
    dry_run: Sparse[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SentSkip:
    """Commits of a bisection that are not measured, or with `undo` may be again.

    Each is a commit or A..B, the commits after A up to and including B.
    """

    commits: Annotated[tuple[str, ...], _NAMES]
    why: Annotated[Sparse[str | None], at_most_characters(WHY_CHARACTERS)] = None
    undo: Sparse[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SentReturn:
    """A testbox that returns to service, if it still is in this condition (None: any):
    `quarantined: REASON`.
    """

    condition: Annotated[Sparse[str | None], at_most_characters(WHY_CHARACTERS)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SentHint:
    """Commits of a bisection that are `factor` times as likely as others, named as in a skip."""

    commits: Annotated[tuple[str, ...], _NAMES]
    factor: Sparse[float] = 10.0
    why: Annotated[Sparse[str | None], at_most_characters(WHY_CHARACTERS)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SentFile:
    """A file of patches: mails or a bare diff."""

    name: str
    data: Annotated[str, _BASE64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SentSource:
    """A file, or the files of a directory; `ordered` as in quilt, else by their subjects."""

    name: str
    files: tuple[SentFile, ...]
    ordered: Sparse[bool] = False
    ignored: Sparse[tuple[str, ...]] = ()

    def source(self) -> PatchSource:
        files = (PatchFile(name=f.name, data=base64.b64decode(f.data)) for f in self.files)
        return PatchSource(
            name=self.name, files=tuple(files), ordered=self.ordered, ignored=self.ignored
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRow:
    """A commit, or a stack of patches on it; `each`: a row for each of the patches.

    Without `ref` the patches are for the base.
    """

    name: Annotated[Sparse[str], _NAME] = ""
    ref: Annotated[Sparse[str | None], _SHORT] = None
    patches: Sparse[tuple[SentSource, ...]] = ()
    each: Sparse[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SentAxis:
    """Values of an axis by their labels."""

    name: Annotated[str, one_of(*AXES)]
    values: Annotated[Mapping[str, str], _are_labels]


@dataclass(frozen=True, slots=True, kw_only=True)
class SentTable:
    """`rows` follow those of `range`, `base` and `head`; `set` overrides keys of the jobs.

    `commits` are those that the request names as a checkout has them, by their names; `bundle` has
    those that the service lacks.
    """

    rows: Annotated[Sparse[tuple[SentRow, ...]], _FEW] = ()
    paths: Annotated[Sparse[tuple[str, ...]], _FEW] = ()
    axes: Sparse[tuple[SentAxis, ...]] = ()
    exclude: Annotated[Sparse[tuple[Mapping[str, str], ...]], _FEW] = ()
    set: Sparse[Mapping[str, str]] = field(default_factory=dict)
    commits: Annotated[Sparse[Mapping[str, str]], _are_commits] = field(default_factory=dict)
    bundle: Annotated[Sparse[str], _BASE64] = ""

    def __post_init__(self) -> None:
        for name, times in Counter(axis.name for axis in self.axes).items():
            if times > 1:
                raise ValueError(f"axes: {name} is given {times} times; give all its values once")

    def to_json(self) -> dict[str, Any]:
        return dict(codec.plain(self))

    @property
    def layout_axes(self) -> list[Axis]:
        return [Axis(name=a.name, values=tuple(a.values.items())) for a in self.axes if a.values]

    def sent_commits(self) -> SentCommits:
        """Raises BadBundle."""
        return _sent(self.commits, self.bundle)

    @property
    def patch_bytes(self) -> int:
        """Size of all files, and of the bundle."""
        sources = (source for row in self.rows for source in row.patches)
        files = (file.data for source in sources for file in source.files)
        return sum(3 * len(data) // 4 for data in (*files, self.bundle))


def _sent(names: Mapping[str, str], bundle: str) -> SentCommits:
    data = base64.b64decode(bundle)
    return SentCommits(names=names, bundle=read_bundle(data) if data else None)


def sent_sources(sources: Iterable[PatchSource]) -> tuple[SentSource, ...]:
    return tuple(
        SentSource(
            name=source.name,
            files=tuple(
                SentFile(name=file.name, data=base64.b64encode(file.data).decode())
                for file in source.files
            ),
            ordered=source.ordered,
            ignored=source.ignored,
        )
        for source in sources
    )


def sent_axes(axes: Sequence[Axis]) -> tuple[SentAxis, ...]:
    return tuple(SentAxis(name=axis.name, values=dict(axis.values)) for axis in axes)
