"""`swingbot here` leaves nothing open that a later start of its service would build or boot."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from swingbot.app.commands.context import CommandContext
from swingbot.app.commands.here import _cancel_open
from tests.fakes.brain import Brain


def test_what_nobody_waits_for_is_cancelled_and_not_ordered_again(brain: Brain) -> None:
    brain.watch(brain.base)
    session = cast(CommandContext, SimpleNamespace(lab=brain.lab))
    _cancel_open(session)
    assert brain.count("comparison WHERE status = 'cancelled'") == 1
    brain.run()
    assert brain.count("orders") == 0 and brain.count("comparison") == 1
