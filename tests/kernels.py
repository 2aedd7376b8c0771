"""The kernel that tests and demo share: its repository and its base build,
made once into the cache.

`python -m tests.kernels` makes both; it is the one full build of a fresh machine.
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
from swingbot_worker.order import BuildOrder
from swingbot_worker.site import Site, from_environment
from tests.demo.tree import TreeError, make_base

KCONFIG, COMPILER = "vm-x86_64", "gcc"
WIRED = f"{KCONFIG}+net-virtio"  # with the driver of a QEMU machine's network card


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


def main() -> int:
    try:
        base_image(from_environment())
    except TreeError as error:
        print(f"kernels: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
