"""Has a cluster what it needs: both of its boxes, and a wire between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from swingbot_jobs.cluster import ROLES, ClusterDriver
from swingbot_jobs.testbox import Testbox
from swingbot_jobs.tuning import Finding


def check(box: Testbox, of_node: Callable[[Testbox], list[Finding]]) -> list[Finding]:
    """What `of_node` finds of each box, with its role and name before it; boxes that are one description are looked at once."""
    driver = box.driver
    assert isinstance(driver, ClusterDriver)
    found: list[Finding] = []
    for name in driver.boxes:
        roles = " and ".join(role for role in ROLES if driver.nodes[role].name == name)
        node = next(node for node in driver.nodes.values() if node.name == name)
        found += [replace(finding, what=f"{roles} {name}: {finding.what}") for finding in of_node(node)]
    return found
