"""The kernels that tests and demo share: their repository and the base builds,
made once into the cache.

`python -m tests.kernels` makes them: the base kernel, the one full build of a fresh machine, and
the same with a network, which compiles `net/` and takes the rest from ccache. Both come before the
tests: a test has 15 minutes, and a build locks the work tree that the demo builds in.
Everything is keyed by content: the repository by the source tarball and the series,
the build by its build key and the exact compiler.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

from swingbot_worker import kbuild
from swingbot_worker.kbuild import tree_objects
from swingbot_worker.kbuild.lock import locked
from swingbot_worker.order import NO_TREE, BuildOrder
from swingbot_worker.site import Site, from_environment
from swingbot_worker.walls import sandbox
from tests.demo.tree import TreeError, make_base

KCONFIG, COMPILER = "vm-x86_64", "gcc"
WIRED = f"{KCONFIG}+net-virtio"  # with the driver of a QEMU machine's network card
FIRST_TREE = "t1"  # what orders call the first tree of a new service, such as the demo's


def demo_repository(site: Site) -> Path:
    return site.cache / "demo-tree" / "demo.git"


def kernel_repository(site: Site, progress: bool = False) -> tuple[Path, str]:
    """(bare repository, base commit) of the demo's kernel."""
    repo = demo_repository(site)
    return repo, make_base(
        repo, site.cache, (lambda line: print(line, flush=True)) if progress else lambda line: None
    )


def base_image(site: Site, kconfig: str = KCONFIG) -> Path:
    """The bzImage of the base commit, built if it is not in the cache.

    Raises SystemExit with the reason if it cannot be.
    """
    repo, base = kernel_repository(site, progress=True)
    # bzImage and what belongs to it stay where the caller can find them again;
    # the build itself comes from the worker's cache.
    out = site.cache / "demo-tree" / "base"
    out.mkdir(parents=True, exist_ok=True)
    order = kbuild.order_by_hand(
        site, repo=str(repo), commit=base, kconfig=kconfig, compiler=COMPILER, layout=0
    )
    with tempfile.TemporaryDirectory(dir=out.parent) as scratch:
        began = time.monotonic()
        outcome = kbuild.build(BuildOrder.from_json(order), Path(scratch), site)
        if outcome["status"] != "built":
            sys.exit(
                f"the base kernel could not be built: {outcome.get('reason')}\n"
                f"{json.dumps(outcome.get('kernel_build', {}), indent=1)}"
            )
        image = out / f"{outcome['kernel_build']['image_sha256']}.bzImage"
        os.replace(Path(scratch) / "bzImage", image)
    print(
        (
            f"base kernel {base[:12]},"
            f" {kconfig}: {'kept from before' if outcome['kernel_build']['cached'] else 'built'} in"
            f" {time.monotonic() - began:.0f} s"
        ),
        flush=True,
    )
    return image


def share_with_first_tree(site: Site) -> None:
    """Give the first tree of each new service copies of what the base build left.

    Trees share neither objects nor compiler cache, so the first build of the demo would be a
    second full one. Only what that tree does not have yet is copied.
    """
    _copy(site.cache / "ccache", tree_objects.compiler_cache(site.cache, FIRST_TREE))
    for root in site.cache.glob("work/linux-*"):
        with locked(root / "lock", 3600):
            for objects in root.glob("src/o-*"):
                owner = root / "owners" / objects.name
                if not owner.exists() or owner.read_text().strip() == NO_TREE:
                    _copy(objects, root / "parked" / FIRST_TREE / objects.name)


def _copy(source: Path, target: Path) -> None:
    if source.exists() and not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_name(f".{target.name}.new")
        sandbox.forget(unfinished)
        sandbox.copied(source, unfinished)
        unfinished.rename(target)


def main() -> int:
    try:
        site = from_environment()
        base_image(site)
        share_with_first_tree(site)
        base_image(site, WIRED)
    except TreeError as error:
        print(f"kernels: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
