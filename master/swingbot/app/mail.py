"""Convert the settings of section `mail` into rules of the core."""

from __future__ import annotations

from swingbot.app.settings import MailSection, SettingsError
from swingbot.core.mail.addresses import BadAddress, addresses
from swingbot.core.mail.recipients import RecipientRules
from swingbot.core.moderation.aa_record import AaRules
from swingbot.core.moderation.filing import MailRules
from swingbot.core.moderation.improvements import Plausible
from swingbot.core.moderation.ruling import RELEASES
from swingbot.core.moderation.send_check import SendRules


def mail_rules(mail: MailSection) -> MailRules:
    """Rules for mail. Raises SettingsError if mail.digest_to contains an invalid address."""
    readers = tuple(_addresses("digest_to", mail.digest_to))
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
        aa=aa_rules(mail),
    )


def aa_rules(mail: MailSection) -> AaRules:
    """Return what a testbox needs before reports about it go to anybody but mail.to."""
    return AaRules(pairs=mail.aa_pairs, days=mail.aa_days, virtual=_names(mail.virtual_testboxes))


def leave_rules(mail: MailSection) -> SendRules:
    """Limits on sending. Raises SettingsError if an address of the operator is invalid."""
    own = (("to", mail.to), ("digest_to", mail.digest_to))
    return SendRules(
        stop=mail.stop,
        opt_outs=_names(mail.opt_outs),
        per_list=mail.per_list,
        per_recipient=mail.per_recipient,
        operator=tuple(address for key, text in own for address in _addresses(key, text)),
    )


def _addresses(key: str, text: str) -> list[str]:
    try:
        return addresses(text)
    except BadAddress as error:
        raise SettingsError(f"mail.{key}: {error}") from None


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
