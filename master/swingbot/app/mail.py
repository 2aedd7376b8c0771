"""Convert the settings of section `mail` into rules of the core."""

from __future__ import annotations

from swingbot.app.settings import MailSection, SettingsError
from swingbot.core.mail.addresses import BadAddress, addresses
from swingbot.core.mail.recipients import RecipientRules
from swingbot.core.moderation.filing import MailRules
from swingbot.core.moderation.improvements import Plausible
from swingbot.core.moderation.ruling import RELEASES
from swingbot.core.moderation.send_check import SendRules


def mail_rules(mail: MailSection) -> MailRules:
    """Rules for mail. Raises SettingsError if mail.digest_to contains an invalid address."""
    try:
        readers = tuple(addresses(mail.digest_to))
    except BadAddress as error:
        raise SettingsError(f"mail.digest_to: {error}") from None
    return MailRules(
        release=next(release for release in RELEASES if release == mail.release),
        dry_run=mail.dry_run,
        rules=RecipientRules(opt_outs=_names(mail.opt_outs), most=mail.most_recipients),
        private_trees=_names(mail.private_trees),
        leaving=leave_rules(mail),
        list_id=mail.list_id,
        regzbot=mail.regzbot,
        digest=mail.digest,
        digest_to=readers,
        plausible=Plausible(),
    )


def leave_rules(mail: MailSection) -> SendRules:
    return SendRules(stop=mail.stop, opt_outs=_names(mail.opt_outs), per_list=mail.per_list)


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
