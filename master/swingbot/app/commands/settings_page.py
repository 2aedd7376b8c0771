"""`docs/settings.md`: every setting with its default and meaning, grouped, with an example for each group."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from swingbot.app.settings import CONSTANTS, GROUPS, Settings, variable_of
from swingbot_jobs import resources

_HEAD = f"""\
# Settings

One TOML file: `--config FILE`, else `SWINGBOT_CONFIG`, else `/etc/swingbot/swingbot.toml`. A
variable `SWINGBOT_<SECTION>_<KEY>` wins over the file: `{variable_of("watch.boots")}=5` is
`boots = 5` in `[watch]`. A service on one machine needs none of them. `swingbot settings` prints
what is in force and where it came from; this page is what `swingbot settings --reference` prints.

An unknown section or key is an error that names the file. Secrets are never settings: keys named
`*_file` name the files that hold them.
"""


def page() -> str:
    """The page as Markdown; paths of this machine are left out."""
    parts = [_HEAD]
    for group in GROUPS:
        parts.append(f"## {group.title}\n\n```toml\n{group.example}```\n")
        parts += [_section(name) for name in group.sections]
    gone = "\n".join(f"| `{key}` | {value:g} |" for key, value in CONSTANTS.items())
    parts.append(
        "## No longer settings\n\nA file may still give these the value that they have;"
        f" another value is refused with a sentence.\n\n| key | value |\n|---|---|\n{gone}\n"
    )
    return "\n".join(parts)


def _section(name: str) -> str:
    section = getattr(Settings(), name)
    rows = "\n".join(
        f"| `{field.name}` | {_default(getattr(section, field.name))} | {_meaning(field)} |"
        for field in dataclasses.fields(section)
    )
    return f"### [{name}]\n\n| key | default | meaning |\n|---|---|---|\n{rows}\n"


def _default(value: object) -> str:
    if isinstance(value, str) and Path(value).is_relative_to(resources.root()):
        return "as installed"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value}`" if value != "" else "empty"


def _meaning(field: dataclasses.Field[object]) -> str:
    return str(field.metadata["doc"]).replace("|", "\\|").replace("<", "&lt;")
