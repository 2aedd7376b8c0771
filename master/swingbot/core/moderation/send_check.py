"""The last check before a mail is sent: what has changed since it was written may stop it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from swingbot.core.mail.addresses import wants_none

DAY_HOURS: Final = 24  # the window of the daily limits


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRules:
    """Limits on sending.

    `stop` is the kill switch in the settings; the one in the database (`swingbot report stop`)
    stops as well. `opt_outs` are addresses, or `@domain` for a whole domain. `per_list` is the
    number of mails that one mailing list gets in 24 hours, `per_recipient` that of anyone else;
    the `operator`'s own addresses have no limit.
    """

    stop: bool = False
    opt_outs: tuple[str, ...] = field(default=())
    per_list: int = 5
    per_recipient: int = 10
    operator: tuple[str, ...] = field(default=())


def why_not(
    recipients: Collection[str], lists: Collection[str], sent: Mapping[str, int], rules: SendRules
) -> str | None:
    """Why a mail to `recipients` must wait for a person; None if it may be sent.

    `lists` are the mailing lists among them, `sent` the mails of the last 24 hours by recipient;
    both in lower case.
    """
    refusing = [address for address in recipients if wants_none(address, rules.opt_outs)]
    if refusing:
        return (
            f"{', '.join(refusing)} opted out of mail after this one was written:"
            " `swingbot report readdress` computes its recipients again"
        )
    limits = [(address, *_limit(address, lists, rules)) for address in recipients]
    full = [
        (address, most, setting)
        for address, most, setting in limits
        if most is not None and sent.get(address.lower(), 0) >= most
    ]
    if full:
        counts = ", ".join(
            f"{address} had {sent[address.lower()]} of {most}" for address, most, _ in full
        )
        settings = " and ".join(dict.fromkeys(setting for _, _, setting in full))
        return (
            f"{counts} mails in the last {DAY_HOURS} hours: release it again later, or raise"
            f" {settings}"
        )
    return None


def _limit(address: str, lists: Collection[str], rules: SendRules) -> tuple[int | None, str]:
    """Return how many mails `address` gets in 24 hours (None: any number), and the setting."""
    if address.lower() in lists:
        return rules.per_list, "mail.per_list"
    if address.lower() in {own.lower() for own in rules.operator}:
        return None, ""
    return rules.per_recipient, "mail.per_recipient"
