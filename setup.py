"""Adds to the wheel what the code reads at run time (`swingbot_jobs.resources`); the rest of
the build is in pyproject.toml.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
RESOURCES = ("jobs", "workers", "db", "dashboards", "master", "docs")
# Packages that lie in these folders are installed as packages; samples are inputs of tests.
LEFT_OUT = ("swingbot", "swingbot_*", "__pycache__", "*.pyc", "*.egg-info", "samples")


class BuildWithResources(build_py):
    """Copies the folders of resources, with their modes, into `swingbot_resources` of the wheel."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:  # a checkout has them where they are
            return
        target = Path(self.build_lib) / "swingbot_resources"
        shutil.rmtree(target, ignore_errors=True)
        for name in RESOURCES:
            shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns(*LEFT_OUT))


setup(cmdclass={"build_py": BuildWithResources})
