"""What is written down beside a report when it is stored: who gets it, who would get it, and how it is judged."""

from __future__ import annotations

from dataclasses import dataclass, field

from swingbot.core.mail.recipients import RecipientRules
from swingbot.core.model.statuses import FirstState
from swingbot.core.moderation.improvements import Plausible
from swingbot.core.moderation.ruling import Release, ReportClass
from swingbot.core.moderation.send_check import SendRules


@dataclass(frozen=True, slots=True, kw_only=True)
class MailRules:
    """The operator's settings of section `mail` that decisions depend on.

    With `dry_run` all mail goes to the operator's own address, whoever it would be sent to. `private_trees` are names or globs of names.
    `digest` says whether improvements are told once a week; `digest_to` who gets that mail (empty: the operator).
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Addressed:
    """Bare addresses. `to` and `cc` get the mail; `would_to` and `would_cc` would get it without the dry run.

    `lists` are those among all of them that are mailing lists; `left_out` names others with the reason; `problem` is why nobody but the operator
    can be written to, or why maintainers are not known.
    """

    to: tuple[str, ...]
    cc: tuple[str, ...] = ()
    would_to: tuple[str, ...] = ()
    would_cc: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    dry_run: bool = True
    problem: str = ""

    @property
    def nobody(self) -> bool:
        """Whether there is nobody but the operator to write to."""
        return not self.would_to


@dataclass(frozen=True, slots=True, kw_only=True)
class Filing:
    """A report's state at birth with its reason, its recipients and its class (None for a mail that is about no single metric)."""

    state: FirstState
    reason: str
    addressed: Addressed
    kind: ReportClass | None = None
