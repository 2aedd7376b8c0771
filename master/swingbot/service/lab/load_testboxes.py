"""Load the testboxes whose files were removed."""

from __future__ import annotations

from dataclasses import replace

from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.service.ports.transaction import OpenTransaction


def load_testboxes(transaction: OpenTransaction, testboxes: KnownTestboxes) -> KnownTestboxes:
    """Add the removed testboxes that the database remembers."""
    with transaction("load testboxes") as tx:
        remembered = tx.testboxes.remembered(testboxes.present.keys())
    return replace(testboxes, remembered=remembered)
