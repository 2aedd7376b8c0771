"""Location of files that are read at run time and are not modules: jobs, testboxes,
migrations, documentation and so on.

A checkout has them in its top-level folders; a wheel carries the same folders in the package
directory `swingbot_resources`, next to this package (setup.py puts them there).

    python -m swingbot_jobs.resources       # prints the directory that holds these folders
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal, get_args

Folder = Literal["jobs", "workers", "db", "dashboards", "master", "docs"]
FOLDERS: Final[tuple[Folder, ...]] = get_args(Folder)

_PACKAGE: Final = Path(__file__).resolve().parent


def root(package: Path = _PACKAGE) -> Path:
    """Return the directory that holds `FOLDERS`; `package` is the directory of `swingbot_jobs`."""
    installed = package.parent / "swingbot_resources"
    return installed if installed.is_dir() else package.parents[1]


def folder(name: Folder) -> Path:
    """Return the absolute path of one of `FOLDERS`."""
    return root() / name


if __name__ == "__main__":
    print(root())  # noqa: T201
