"""A trusted commit poisons objects and compiler cache; a trusted build of another tree follows."""

from __future__ import annotations

import shutil
from dataclasses import replace

from tests.attack.hostile_build import builds
from tests.attack.target import Result, Target
from tests.builds.test_hostile_patches import COMPILE, POISON, git, hostile
from tests.fakelinux import FakeCommit, add_commits

NAME = "build-shared-cache"
WANTED = "the same image as in a cache of its own, and no program of the first commit is run"
_PREFIX = (
    "printf '#!/bin/sh\\necho ATTACK ran >&2\\nexec \"$@\"\\n' > $CCACHE_DIR/p\n"
    "chmod 755 $CCACHE_DIR/p\n"
    'echo "prefix_command = $CCACHE_DIR/p" > $CCACHE_DIR/ccache.conf\n'
)


def run(target: Target) -> Result:
    """Build the victim after the attack, and alone; then in the tree that was attacked."""
    with builds() as here:
        base = git(here.repo, "rev-parse", "HEAD")
        poison = hostile(here.repo, COMPILE + _PREFIX, after=POISON)
        git(here.repo, "checkout", "-q", "--detach", base)
        [*_, victim] = add_commits(here.repo, [FakeCommit(speed=77)])
        poisoned = here.build(poison, trust="trusted", tree="t1")
        after = here.build(victim, trust="trusted", tree="t2")
        shutil.rmtree(here.site.cache / "kernels")
        own = here.build(victim, trust="trusted", tree="t1")
        elsewhere = replace(here, site=replace(here.site, cache=here.place / "alone"))
        alone = elsewhere.build(victim, trust="trusted", tree="t2")
    equal, ran = bool(alone.image) and after.image == alone.image, "ran" in after.said + own.said
    return Result(
        held=equal and not ran and "poisoned" in poisoned.said,
        line=f"another tree gets the image of a clean cache: {equal}; a program was run: {ran};"
        f" the tree itself is poisoned: {own.image != alone.image}",
    )
