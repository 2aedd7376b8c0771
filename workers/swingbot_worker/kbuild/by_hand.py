"""A build order as a person gives it: a name for a commit instead of its id, the build key computed here."""

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
    """Make a build order. Raises InfraError if the repository, commit or kconfig is not there."""
    full = source.resolve(repo, commit)
    text = configuration_of(site, kconfig).text
    try:
        tree = source.find(repo, full, site.cache).tree
    except source.NotAKernel:
        tree = full  # building it says what is wrong
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
