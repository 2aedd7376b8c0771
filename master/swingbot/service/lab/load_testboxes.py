"""Load the testboxes whose files were removed."""

from __future__ import annotations

from dataclasses import replace

from swingbot.service.ports import Lab


def load_testboxes(lab: Lab) -> Lab:
    """Return the lab with the removed testboxes that the database remembers."""
    with lab.transaction("load testboxes") as tx:
        remembered = tx.testboxes.remembered(lab.testboxes.present.keys())
    return replace(lab, testboxes=replace(lab.testboxes, remembered=remembered))
