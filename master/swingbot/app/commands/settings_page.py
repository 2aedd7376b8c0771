"""Generate `docs/settings.md`: settings by group, with defaults, meanings and examples."""

from __future__ import annotations

import dataclasses
import textwrap
from pathlib import Path

from swingbot.app.settings import GROUPS, Settings, variable_of
from swingbot_jobs import resources

_HEAD = f"""\
# Settings

Settings are read from one TOML file: `--config FILE`, else `SWINGBOT_CONFIG`, else
`/etc/swingbot/swingbot.toml`. An environment variable `SWINGBOT_<SECTION>_<KEY>` overrides the
file: `{variable_of("watch.boots")}=5` is `boots = 5` in `[watch]`. A service on a single machine
needs no settings. `swingbot settings` prints the effective values and their origin;
`swingbot settings --reference` prints this page.

An unknown section or key is an error that names the file. Secrets are never settings: keys ending
in `_file` name the files that contain them.
"""


def page() -> str:
    """The page as Markdown, without paths of this machine."""
    parts = [_HEAD]
    for group in GROUPS:
        parts.append(f"## {group.title}\n\n```toml\n{group.example}```\n")
        parts += [_section(name) for name in group.sections]
    return "\n".join(parts)


def _section(name: str) -> str:
    section = getattr(Settings(), name)
    entries = "\n".join(
        _wrapped(f"- `{field.name}` ({_default(getattr(section, field.name))}): {_meaning(field)}")
        for field in dataclasses.fields(section)
    )
    return f"### [{name}]\n\n{entries}\n"


def _wrapped(entry: str) -> str:
    return textwrap.fill(
        entry, 98, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def _default(value: object) -> str:
    if isinstance(value, str) and Path(value).is_relative_to(resources.root()):
        return "as installed"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value}`" if value != "" else "empty"


def _meaning(field: dataclasses.Field[object]) -> str:
    return str(field.metadata["doc"]).replace("<", "&lt;")
