"""Build orders from the command line: the commit may be a name, the build key is computed."""

from __future__ import annotations

from typing import Any

from swingbot_jobs.contract.build_key import build_key
from swingbot_jobs.contract.trust import Trust, key_at
from swingbot_worker.kbuild import source
from swingbot_worker.kbuild.configure import configuration_of
from swingbot_worker.site import Site


def order_by_hand(
    site: Site,
    *,
    repo: str,
    commit: str,
    kconfig: str,
    compiler: str,
    layout: int,
    trust: Trust = "trusted",
) -> dict[str, Any]:
    """Make a build order. Raises InfraError if the repository, commit or kconfig does not exist."""
    full = source.resolve(repo, commit)
    text = configuration_of(site, kconfig).text
    try:
        tree = source.find(repo, full, site.cache).tree
    except source.NotAKernel:
        tree = full  # the build reports the error
    key = key_at(build_key(tree, kconfig, text, compiler, layout), trust)
    kernel: dict[str, Any] = {
        "build_key": key,
        "repo": repo,
        "commit": full,
        "kconfig": kconfig,
        "compiler": compiler,
        "layout": layout,
    }
    if trust == "untrusted":
        kernel["trust"] = trust
    return {"version": 1, "kind": "build", "order": "o0", "attempt": "a0", "kernel": kernel}
