"""The last check before a mail is sent: what has changed since it was written may stop it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from swingbot.core.mail.addresses import wants_none

DAY_HOURS: Final = 24  # the window of a list's daily limit


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRules:
    """Limits on sending.

    `stop` is the kill switch in the settings; the one in the database (`swingbot report stop`)
    stops as well. `opt_outs` are addresses, or `@domain` for a whole domain; `per_list` is the
    number of mails that one mailing list gets in 24 hours.
    """

    stop: bool = False
    opt_outs: tuple[str, ...] = field(default=())
    per_list: int = 5


def why_not(
    recipients: Collection[str], lists: Collection[str], sent: Mapping[str, int], rules: SendRules
) -> str | None:
    """Why a mail to `recipients` must wait for a person; None if it may be sent.

    `lists` are the mailing lists among them, `sent` the mails of the last 24 hours by list; both in
    lower case.
    """
    refusing = [address for address in recipients if wants_none(address, rules.opt_outs)]
    if refusing:
        return (
            f"{', '.join(refusing)} opted out of mail after this one was written:"
            " `swingbot report readdress` computes its recipients again"
        )
    full = [
        address
        for address in recipients
        if address.lower() in lists and sent.get(address.lower(), 0) >= rules.per_list
    ]
    if full:
        counts = ", ".join(
            f"{address} had {sent[address.lower()]} of {rules.per_list}" for address in full
        )
        return (
            f"{counts} mails in the last {DAY_HOURS} hours: release it again later, or raise"
            " mail.per_list"
        )
    return None
