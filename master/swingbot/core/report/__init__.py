"""What a report says, in which words, and as which bytes. Facts in, text out."""

from __future__ import annotations

from swingbot.core.report.body import mail, subsystem
from swingbot.core.report.encode import BadAddress, addresses, encode, message_id
from swingbot.core.report.facts import Bisection, Clue, Commit, Gate, Posted, ReportFacts, Row, Side
from swingbot.core.report.followup import FollowUp, follow_up
from swingbot.core.report.letter import BODY_BYTES, Mail
from swingbot.core.report.reading import BadFacts

__all__ = [
    "BODY_BYTES",
    "BadAddress",
    "BadFacts",
    "Bisection",
    "Clue",
    "Commit",
    "FollowUp",
    "Gate",
    "Mail",
    "Posted",
    "ReportFacts",
    "Row",
    "Side",
    "addresses",
    "encode",
    "follow_up",
    "mail",
    "message_id",
    "subsystem",
]
