"""A change of Buildbot's builders, workers or testboxes is reviewed by its effect."""

from __future__ import annotations

from tests.golden.remake import BUILDBOT, buildbot_text


def test_the_configuration_of_buildbot_is_the_reviewed_one() -> None:
    assert buildbot_text() == BUILDBOT.read_text()
