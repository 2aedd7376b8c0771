"""Facts stored with a report: its recipients, its first state and its class."""

from __future__ import annotations

from dataclasses import dataclass, field

from swingbot.core.mail.recipients import RecipientRules
from swingbot.core.model.statuses import FirstState
from swingbot.core.moderation.aa_record import AaRules
from swingbot.core.moderation.improvements import Plausible
from swingbot.core.moderation.ruling import Release, ReportClass
from swingbot.core.moderation.send_check import SendRules


@dataclass(frozen=True, slots=True, kw_only=True)
class MailRules:
    """The operator's settings of section `mail` that decisions depend on.

    With `dry_run` all mail goes to the operator instead of its recipients. `private_trees` are
    names or globs of names. `digest` enables the weekly mail about improvements; `digest_to` are
    its recipients (empty: the operator).
    """

    release: Release = "hold"
    dry_run: bool = True
    rules: RecipientRules = field(default_factory=RecipientRules)
    private_trees: tuple[str, ...] = ()
    leaving: SendRules = field(default_factory=SendRules)
    list_id: str = ""
    regzbot: bool = False
    digest: bool = True
    digest_to: tuple[str, ...] = ()
    plausible: Plausible = field(default_factory=Plausible)
    aa: AaRules = field(default_factory=AaRules)


@dataclass(frozen=True, slots=True, kw_only=True)
class Addressed:
    """Bare addresses.

    `to` and `cc` get the mail; `would_to` and `would_cc` would get it without the dry run.

    `lists` are the mailing lists among them; `left_out` are (address, reason) of omitted addresses.
    `commit_only` are those of `would_to` and `would_cc` whom the commit alone names.
    `restricted` says why only the operator gets the mail although there is no dry run.
    `problem` says why only the operator gets the mail, or why the maintainers are unknown.
    """

    to: tuple[str, ...]
    cc: tuple[str, ...] = ()
    would_to: tuple[str, ...] = ()
    would_cc: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    dry_run: bool = True
    problem: str = ""
    restricted: str = ""
    commit_only: tuple[str, ...] = ()

    @property
    def without_recipient(self) -> bool:
        """Whether the operator is the only recipient."""
        return not self.would_to


@dataclass(frozen=True, slots=True, kw_only=True)
class Filing:
    """First state of a report with the reason, its recipients and its class.

    `kind` is None for a mail that is not about a single metric.
    """

    state: FirstState
    reason: str
    addressed: Addressed
    kind: ReportClass | None = None

    @classmethod
    def unmoderated(cls, to: tuple[str, ...]) -> Filing:
        """Return the filing of a mail that its recipients requested, or that is about their own
        lab: it is sent at once, and a dry run does not redirect it.
        """
        addressed = Addressed(to=to, would_to=to, dry_run=False)
        return cls(state="queued", reason="", addressed=addressed)
