"""Load the testboxes whose files were removed."""

from __future__ import annotations

from dataclasses import replace

from swingbot.service.ports import Catalogue
from swingbot.service.ports.transaction import OpenTransaction


def load_testboxes(transaction: OpenTransaction, catalogue: Catalogue) -> Catalogue:
    """Add the removed testboxes that the database remembers."""
    with transaction("load testboxes") as tx:
        remembered = tx.testboxes.remembered(catalogue.testboxes.present.keys())
    testboxes = replace(catalogue.testboxes, remembered=remembered)
    return replace(catalogue, testboxes=testboxes)
