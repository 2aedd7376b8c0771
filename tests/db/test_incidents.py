"""One incident per culprit, on a real database: what is attached, what people say, and that
nothing is sent twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from swingbot.app.settings import load
from swingbot.app.wiring import make_lab, sync_testboxes
from swingbot.core.incident.model import Incident
from swingbot.core.mail.addresses import addresses
from swingbot.core.model.lookup import NotFound
from swingbot.core.model.records import Bisection, Variant
from swingbot.core.moderation.aa_record import AaRules
from swingbot.core.moderation.filing import MailRules
from swingbot.service.faults import Faults
from swingbot.service.incident.keep import fold_sightings, merge, note_culprit, say, split
from swingbot.service.ports import Lab, RequestError
from swingbot.service.ports.reports import NewReport
from swingbot.service.report.draft_followups import draft_followups
from swingbot.service.report.readdress import readdress
from swingbot_db import read
from tests import builders as make

PATCH = "5" * 40


@dataclass(kw_only=True)
class World:
    """A tree in which two bisections ended, at commits 2 and 4 of five."""

    lab: Lab
    conn: sa.Connection
    tree: int
    testbox: make.Testbox
    kernels: list[make.Kernel]

    def bisection(
        self,
        culprit: int,
        *,
        tree: int | None = None,
        metric: str = make.METRIC,
        kernels: list[make.Kernel] | None = None,
    ) -> Bisection:
        kernels = kernels or self.kernels
        named = {
            "commit": kernels[culprit].commit,
            "subject": "x",
            "probability": 0.99,
            "change_pct": -18.0,
            "parent": kernels[culprit - 1].commit,
        }
        took = {"boots": 8, "kernels": 4, "builds": 3}
        conclusion = {
            "status": "culprit",
            "culprit": named,
            "culprits": [named],
            "candidates": [],
            **took,
        }
        number = make.a_bisection(
            self.conn,
            tree or self.tree,
            self.testbox,
            kernels,
            metric=metric,
            status="culprit",
            conclusion=conclusion,
        )
        with self.lab.transaction("test") as tx:
            found = tx.bisections.get(number)
        assert found is not None
        return found

    def variant(self, kernel: make.Kernel) -> Variant:
        with self.lab.transaction("test") as tx:
            return tx.variants.get(kernel.variant)

    def note(self, culprit: int, **more: Any) -> int:
        """The incident of what a new bisection found."""
        bisection, kernels = self.bisection(culprit, **more), more.get("kernels") or self.kernels
        with self.lab.transaction("test") as tx:
            return note_culprit(
                self.lab.tools.git,
                tx.trees,
                tx.sightings,
                tx.incidents,
                bisection,
                tx.variants.get(kernels[culprit].variant),
            )

    def measured(
        self,
        incident: int,
        culprit: int,
        *,
        kernels: list[make.Kernel] | None = None,
        change: float = -18.0,
    ) -> int:
        """Parent against culprit, over and with its row."""
        kernels = kernels or self.kernels
        tree = self.conn.execute(
            sa.text("SELECT tree FROM variant WHERE id = :v"), {"v": kernels[culprit].variant}
        ).scalar_one()
        comparison = make.a_comparison(
            self.conn,
            tree,
            kernels[culprit - 1],
            kernels[culprit],
            [self.testbox],
            kind="attribute",
            status="done",
        )
        make.a_row(
            self.conn,
            comparison,
            self.testbox,
            base=(100.0, 100.1),
            head=(100.0 + change, 100.1 + change),
            verdict="worse" if change < 0 else "better",
            headline=True,
            label="",
        )
        self.conn.execute(
            sa.text("UPDATE sighting SET comparison = :c WHERE incident = :i AND culprit = :v"),
            {"c": comparison, "i": incident, "v": kernels[culprit].variant},
        )
        self.conn.execute(
            sa.text("UPDATE incident SET comparison = coalesce(comparison, :c) WHERE id = :i"),
            {"c": comparison, "i": incident},
        )
        return comparison

    def mailed(
        self, incident: int, state: str = "sent", kind: str = "first", revision: int = 1
    ) -> int:
        report = make.a_report(
            self.conn,
            incident,
            kind=kind,
            state=state,
            message_id=f"<i{incident}.{kind}.{revision}@x.org>",
            revision=revision,
        )
        message = (
            f"Message-ID: <i{incident}.{kind}.{revision}@x.org>\r\nReferences: "
            f"<patch@lists.org>\r\n\r\nhello\r\n"
        )
        self.conn.execute(
            sa.text("INSERT INTO outbox (report, message) VALUES (:r, :m)"),
            {"r": report, "m": message.encode()},
        )
        self.conn.execute(
            sa.text("UPDATE sighting SET report = :r WHERE incident = :i AND report IS NULL"),
            {"r": report, "i": incident},
        )
        return report

    def state(self, report: int) -> tuple[str, str | None]:
        row = self.conn.execute(
            sa.text("SELECT state, withdrawn FROM report WHERE id = :r"), {"r": report}
        ).one()
        return row.state, row.withdrawn

    def status(self, incident: int) -> str:
        return str(
            self.conn.execute(
                sa.text("SELECT status FROM incident WHERE id = :i"), {"i": incident}
            ).scalar_one()
        )

    def bisections(self, incident: int) -> list[int]:
        with self.lab.transaction("test") as tx:
            return sorted(tx.incidents.bisections(incident))

    def events(self, incident: int) -> list[tuple[str, str]]:
        rows = self.conn.execute(
            sa.text("SELECT act, who FROM incident_event WHERE incident = :i ORDER BY id"),
            {"i": incident},
        )
        return [(row.act, row.who) for row in rows]

    def to_report(self) -> list[int]:
        with self.lab.transaction("test") as tx:
            return [incident for incident, _ in tx.incidents.to_report()]

    def follow(self) -> list[tuple[int, str, str]]:
        """Draft what is to follow; (incident, kind, state) of all follow-ups there are."""
        faults = Faults(self.lab.transaction)
        draft_followups(self.lab, faults)
        faults.tell()
        rows = self.conn.execute(
            sa.text("SELECT incident, kind, state FROM report WHERE kind <> 'first' ORDER BY id")
        )
        return [(row.incident, row.kind, row.state) for row in rows]

    def say(
        self, incident: int, act: Any, reason: str | None = None, commit: str | None = None
    ) -> Incident:
        return say(
            self.lab.transaction,
            self.lab.tools.git,
            incident,
            act,
            who="otto@lab",
            reason=reason,
            commit=commit,
        )

    def merge(self, number: int, into: int) -> Incident:
        return merge(self.lab.transaction, [number], into, who="otto@lab", reason=None)


@pytest.fixture
def world(tmp_path: Path, db_url: str, engine: sa.Engine, conn: sa.Connection) -> World:
    settings = load(
        environ={"SWINGBOT_PATHS_STATE": str(tmp_path / "state"), "SWINGBOT_DB_URL": db_url}
    )
    lab = make_lab(settings, engine)
    sync_testboxes(lab)
    tree = make.a_tree(conn)
    return World(
        lab=lab,
        conn=conn,
        tree=tree,
        testbox=make.a_testbox(conn),
        kernels=[make.a_kernel(conn, tree, n) for n in range(5)],
    )


def another_tree(world: World, *, same: bool) -> list[make.Kernel]:
    """Kernels of a second tree: of the same commits, or of others."""
    tree = make.a_tree(world.conn, "next")
    kernels = [make.a_variant(world.conn, tree, n + 50) for n in range(5)]
    if same:
        for mine, other in zip(kernels, world.kernels, strict=True):
            world.conn.execute(
                sa.text("UPDATE variant SET commit = :c WHERE id = :v"),
                {"c": other.commit, "v": mine.variant},
            )
        kernels = [
            make.Kernel(
                **{
                    **{f: getattr(mine, f) for f in mine.__dataclass_fields__},
                    "commit": other.commit,
                }
            )
            for mine, other in zip(kernels, world.kernels, strict=True)
        ]
    return kernels


def test_another_metric_of_the_same_commit_is_the_same_incident(world: World) -> None:
    first = world.note(2)
    assert world.note(2, metric="page-fault.other") == first
    assert world.note(4) != first
    assert world.events(first) == [("opened", "swingbot"), ("seen", "swingbot")]
    assert len(world.bisections(first)) == 2


def test_noting_the_same_finding_twice_changes_nothing(world: World) -> None:
    bisection = world.bisection(2)
    for _ in range(2):
        with world.lab.transaction("test") as tx:
            number = note_culprit(
                world.lab.tools.git,
                tx.trees,
                tx.sightings,
                tx.incidents,
                bisection,
                tx.variants.get(world.kernels[2].variant),
            )
    assert world.events(number) == [("opened", "swingbot")]


def test_the_same_commit_in_another_tree_is_the_same_incident(world: World) -> None:
    first = world.note(2)
    kernels = another_tree(world, same=True)
    assert world.note(2, kernels=kernels, tree=2) == first


def test_a_copy_with_the_same_patch_id_is_the_same_incident(world: World) -> None:
    first = world.note(2)
    world.conn.execute(sa.text("UPDATE sighting SET patch_id = :p"), {"p": PATCH})
    with world.lab.transaction("test") as tx:
        assert [s.incident for s in tx.sightings.like("f" * 40, PATCH)] == [first]
        assert tx.sightings.like("f" * 40, None) == []


@pytest.mark.parametrize("act", ["close", "expected", "invalid"])
def test_a_mail_that_waits_is_taken_back_and_one_that_left_is_not(world: World, act: str) -> None:
    one, two = world.note(2), world.note(4)
    held, sent = world.mailed(one, "held"), world.mailed(two, "sent")
    for number in (one, two):
        assert world.say(number, act, "because").status != "open"
    assert world.state(held)[0] == "dropped"
    assert "because" in str(world.state(held)[1])
    assert world.state(sent) == ("sent", None)
    before = world.events(one)
    world.say(one, act, "because")
    assert world.events(one) == before, "saying it again changes nothing"


def test_after_reopening_a_mail_that_never_left_is_written_anew_and_one_that_left_is_not(
    world: World,
) -> None:
    one, two = world.note(2), world.note(4)
    for number, culprit in ((one, 2), (two, 4)):
        world.measured(number, culprit)
    assert world.to_report() == [one, two]
    world.mailed(one, "held")
    world.mailed(two, "sent")
    assert world.to_report() == []
    for number in (one, two):
        world.say(number, "close")
        world.say(number, "reopen")
    assert world.to_report() == [one]


def test_two_first_mails_of_one_incident_cannot_both_stand(world: World) -> None:
    one = world.note(2)
    world.mailed(one, "held")
    with pytest.raises(sa.exc.IntegrityError):
        world.mailed(one, "held", revision=2)


def test_a_mail_that_a_person_dropped_is_never_written_again(world: World) -> None:
    one = world.note(2)
    world.measured(one, 2)
    report = world.mailed(one, "held")
    world.conn.execute(sa.text("UPDATE report SET state = 'dropped' WHERE id = :r"), {"r": report})
    world.conn.execute(sa.text("UPDATE sighting SET report = NULL"))
    world.say(one, "close")
    world.say(one, "reopen")
    assert world.to_report() == []


def test_a_merge_moves_what_was_found_and_no_mail(world: World) -> None:
    one, two = world.note(2), world.note(4)
    world.measured(one, 2)
    held, sent = world.mailed(one, "held"), world.mailed(two, "sent")
    moved = world.bisections(one)
    assert world.merge(one, two).id == two
    assert (world.status(one), world.bisections(one)) == ("duplicate", [])
    assert set(moved) <= set(world.bisections(two))
    assert world.state(held)[0] == "dropped"
    assert world.state(sent) == ("sent", None)
    assert world.merge(one, two).id == two, "merging twice is merging once"
    assert world.events(one)[-1] == ("withdrawn", "swingbot") or world.events(one)[-1] == (
        "merge",
        "otto@lab",
    )
    assert sum(act == "merge" for act, _ in world.events(two)) == 1


def test_if_only_the_duplicate_was_mailed_its_thread_continues_without_a_second_first_mail(
    world: World,
) -> None:
    one, two = world.note(2), world.note(4)
    world.measured(one, 2)
    world.measured(two, 4)
    world.mailed(one, "sent")
    waiting = world.mailed(two, "held")
    world.merge(one, two)
    assert world.state(waiting)[0] == "dropped"
    assert world.to_report() == []
    with world.lab.transaction("test") as tx:
        first = tx.reports.first_mail(two)
    assert first is not None and first.message_id == f"<i{one}.first.1@x.org>"
    assert world.follow() == [(two, "update", "held")]
    assert world.follow() == [(two, "update", "held")], "drafted once"


def test_splitting_a_duplicate_undoes_the_merge(world: World) -> None:
    one, two = world.note(2), world.note(4)
    own, other = world.bisections(one), world.bisections(two)
    world.say(one, "expected")
    world.merge(one, two)
    split(world.lab.transaction, one, who="otto@lab", reason=None)
    assert (world.status(one), world.bisections(one), world.bisections(two)) == (
        "expected",
        own,
        other,
    )
    split(world.lab.transaction, one, who="otto@lab", reason=None)
    assert sum(act == "split" for act, _ in world.events(one)) == 1


def test_what_one_bisection_found_can_be_taken_out(world: World) -> None:
    one, two = world.note(2), world.note(4)
    (of_two,) = world.bisections(two)
    world.merge(two, one)
    out = split(
        world.lab.transaction, one, who="otto@lab", reason="another matter", bisection=of_two
    )
    assert (out.id, out.status) == (two, "open")
    assert of_two not in world.bisections(one)
    with pytest.raises(RequestError, match="each commit has exactly one incident"):
        split(world.lab.transaction, two, who="otto@lab", reason=None, bisection=of_two)
    with pytest.raises(RequestError, match="is not one of the bisections"):
        split(world.lab.transaction, one, who="otto@lab", reason=None, bisection=of_two)


def test_after_a_split_later_findings_go_where_their_commit_is(world: World) -> None:
    one, two = world.note(2), world.note(4)
    world.merge(two, one)
    assert world.note(4, metric="page-fault.other") == one
    split(world.lab.transaction, two, who="otto@lab", reason=None)
    # the oldest that has this very commit
    assert world.note(4, metric="page-fault.third") == two or world.note(4) == one


@pytest.mark.parametrize(
    ("number", "into", "why"),
    [(1, 1, "into itself"), (1, 99, "i99 does not exist"), (99, 1, "i99 does not exist")],
)
def test_a_merge_that_makes_no_sense_is_refused(
    world: World, number: int, into: int, why: str
) -> None:
    world.note(2)
    with pytest.raises((RequestError, NotFound), match=why):
        world.merge(number, into)


def test_merging_into_a_duplicate_names_where_it_went(world: World) -> None:
    one, two, three = world.note(2), world.note(4), world.note(3)
    world.merge(one, two)
    with pytest.raises(RequestError, match=f"i{one} was itself merged into i{two}"):
        world.merge(three, one)
    with pytest.raises(RequestError, match=f"i{one} is already merged into i{two}"):
        world.merge(one, three)


def test_an_invalid_incident_is_taken_back_once_where_its_mail_was_sent(world: World) -> None:
    one, two = world.note(2), world.note(4)
    world.measured(one, 2)
    world.measured(two, 4)
    world.mailed(one, "sent")
    world.mailed(two, "held")
    for number in (one, two):
        world.say(number, "invalid", "the testbox had a broken fan")
    assert world.follow() == [(one, "retraction", "held")]
    assert world.follow() == [(one, "retraction", "held")]
    with world.lab.transaction("test") as tx:
        ((report, *_),) = tx.reports.of_incident(one, "retraction")
    row = world.conn.execute(
        sa.text(
            "SELECT r.body, o.message FROM report r JOIN outbox o ON o.report = r.id "
            "WHERE r.id = :r"
        ),
        {"r": report},
    ).one()
    assert "We retract our report" in row.body and "broken fan" in row.body
    assert f"about this mail: {world.lab.settings.web_url}/docs/your-mail\n" in row.body
    headers = bytes(row.message).decode()
    assert f"In-Reply-To: <i{one}.first.1@x.org>" in headers
    assert f"References: <patch@lists.org>\r\n <i{one}.first.1@x.org>" in headers


def test_a_follow_up_that_cannot_be_written_keeps_back_no_other(world: World) -> None:
    one, two = world.note(2), world.note(4)
    for number, culprit in ((one, 2), (two, 4)):
        world.measured(number, culprit)
        world.mailed(number, "sent")
        world.say(number, "invalid", "the testbox had a broken fan")
    (bisection,) = world.bisections(one)
    world.conn.execute(
        sa.text('UPDATE bisection SET terms = \'{"noise": {"sd": 1}}\' WHERE id = :b'),
        {"b": bisection},
    )
    with pytest.raises(ExceptionGroup, match=f"^retraction mail of i{one}: BadDocument"):
        world.follow()
    kinds = world.conn.execute(sa.text("SELECT incident, kind FROM report WHERE kind <> 'first'"))
    assert kinds.all() == [(two, "retraction")]


def test_a_retraction_that_waits_is_taken_back_by_reopening_and_written_again_for_a_second_mistake(
    world: World,
) -> None:
    one = world.note(2)
    world.measured(one, 2)
    world.mailed(one, "sent")
    world.say(one, "invalid")
    world.follow()
    world.say(one, "reopen")
    assert world.follow() == [(one, "retraction", "dropped")]
    world.say(one, "invalid")
    assert world.follow() == [(one, "retraction", "dropped"), (one, "retraction", "held")]


def test_a_finding_in_another_tree_updates_a_sent_mail_and_is_folded_into_a_waiting_one(
    world: World,
) -> None:
    one, two = world.note(2), world.note(4)
    world.measured(one, 2)
    world.measured(two, 4)
    world.mailed(one, "sent")
    waiting = world.mailed(two, "held")
    kernels = another_tree(world, same=True)
    for number, culprit in ((one, 2), (two, 4)):
        assert world.note(culprit, kernels=kernels, tree=2) == number
        world.measured(number, culprit, kernels=kernels, change=-17.0)
    with world.lab.transaction("test") as tx:
        fold_sightings(tx)
    assert world.state(waiting)[0] == "dropped"
    assert world.to_report() == [two]
    assert world.follow() == [(one, "update", "held")]
    body = world.conn.execute(sa.text("SELECT body FROM report WHERE kind = 'update'")).scalar_one()
    assert "The same commit is now in next" in body
    assert "17.0% worse" in body


def mailing(world: World, mail: MailRules) -> World:
    settings = replace(world.lab.settings, mail=mail)
    return replace(world, lab=replace(world.lab, settings=settings))


def test_an_update_about_a_testbox_without_its_record_goes_to_the_operator(world: World) -> None:
    mail = MailRules(dry_run=False, aa=AaRules(virtual=("vm-icount",)))
    world = mailing(world, mail)
    lab = world.lab
    one = world.note(2)
    world.measured(one, 2)
    world.mailed(one, "sent")
    author = world.variant(world.kernels[2]).author
    world.conn.execute(
        sa.text("UPDATE outbox SET message = :m"),
        {"m": f"Message-ID: <i@x.org>\r\nTo: {author}\r\n\r\nhello\r\n".encode()},
    )
    elsewhere = replace(world, testbox=make.a_testbox(world.conn, "vm-tcg"))
    assert elsewhere.note(2) == one
    elsewhere.measured(one, 2)
    assert world.follow() == [(one, "update", "held")]
    operator = list(lab.settings.recipients)

    def update() -> Any:
        return world.conn.execute(
            sa.text("SELECT id, to_addrs, would_to, restricted FROM report WHERE kind = 'update'")
        ).one()

    number, to, would_to, restricted = update()
    assert to == operator and would_to == addresses(author)
    assert "vm-tcg is a virtual testbox" in restricted
    readdress(lab, number, "ada")
    assert update().to_addrs == operator and "vm-tcg" in update().restricted
    every = replace(mail, aa=AaRules(virtual=("vm-*",)))
    readdress(mailing(world, every).lab, number, "ada")
    assert update().to_addrs == addresses(author) and update().restricted is None


def test_a_later_mail_readdressed_goes_to_readers_of_the_first_alone(world: World) -> None:
    world = mailing(world, MailRules(dry_run=False, aa=AaRules(virtual=("vm-*",))))
    one = world.note(2)
    world.measured(one, 2)
    world.mailed(one, "sent")  # to the operator
    world.say(one, "invalid", "a broken fan")
    assert world.follow() == [(one, "retraction", "held")]
    number = world.conn.execute(sa.text("SELECT max(id) FROM report")).scalar_one()
    readdress(world.lab, number, "ada")
    to = world.conn.execute(
        sa.text("SELECT to_addrs FROM report WHERE id = :r"), {"r": number}
    ).scalar_one()
    assert to == list(world.lab.settings.recipients)


def test_a_mail_that_is_about_to_leave_is_not_written_anew(world: World) -> None:
    two = world.note(4)
    world.measured(two, 4)
    queued = world.mailed(two, "queued")
    kernels = another_tree(world, same=True)
    world.note(4, kernels=kernels, tree=2)
    world.measured(two, 4, kernels=kernels)
    with world.lab.transaction("test") as tx:
        fold_sightings(tx)
    assert world.state(queued) == ("queued", None)
    assert world.follow() == []


def test_the_history_of_an_incident_can_be_read(world: World) -> None:
    one = world.note(2)
    world.say(one, "expected", "we traded it for latency")
    found = read.incident(world.conn, one)
    assert [(event["act"], event["who"], event["reason"]) for event in found["history"]][-1] == (
        "expected",
        "otto@lab",
        "we traded it for latency",
    )
    assert found["status"] == "expected"


def test_what_a_person_says_while_a_mail_is_written_waits_for_it_and_takes_it_back(
    world: World, db_url: str
) -> None:
    one = world.note(2)
    world.measured(one, 2)
    with ThreadPoolExecutor(1) as other:
        with world.lab.transaction("draft") as tx:
            assert [incident for incident, _ in tx.incidents.to_report()] == [one]
            said = other.submit(world.say, one, "close")
            with pytest.raises(TimeoutError):
                said.result(timeout=1.0)
            number = tx.reports.reserve()
            more: dict[str, Any] = {
                "to": ["x@y.org"],
                "subject": "s",
                "body": "b",
                "message": b"m",
                "state": "held",
            }
            tx.reports.add(
                NewReport(
                    number=number,
                    incident=one,
                    kind="first",
                    revision=1,
                    message_id="<m@x.org>",
                    **more,
                )
            )
        assert said.result(timeout=30.0).status == "closed"
    assert world.state(number)[0] == "dropped"
