"""Return a testbox to service, by an operator."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from swingbot.core.access.roles import Person, Role
from swingbot.core.table.request_document import SentReturn
from swingbot.service.lab import set_testboxes
from swingbot.service.ports import Lab
from swingbot.web.access.forms import Forms
from swingbot.web.http import json_body
from swingbot.web.http.fair_threads import FairThreads, in_turn
from swingbot.web.pages.acts import Act, ActPages, ActPlan, Field
from swingbot.web.pages.refused import answer_once


def routes(
    forms: Forms, lab: Callable[[], Lab], acts: ActPages, threads: FairThreads
) -> list[Route]:
    def plan(person: Person, name: str, sent: SentReturn) -> ActPlan:
        condition = set_testboxes.out_of_service(lab().transaction, name)
        return ActPlan(
            lines=[
                f"{name} is {condition}",
                "boots that wait for it begin in the next round",
                "earlier boots of its anchor no longer serve as reference, and its record of pairs"
                " without a claimed change begins again",
            ],
            pins={"condition": condition},
        )

    def do(person: Person, name: str, sent: SentReturn) -> None:
        resume(name, sent, person)

    def resume(name: str, sent: SentReturn, person: Person) -> str:
        transaction, seen = lab().transaction, sent.condition
        return set_testboxes.resume(transaction, name, who=person.who, seen=seen)

    act = Act(
        title="Return {id} to service",
        about="Do this when the testbox is repaired. It works again, and its queue with it.",
        button="Return it to service",
        sent=SentReturn,
        fields=(Field(name="condition", pinned=True),),
        plan=plan,
        do=do,
        role=Role.OPERATOR,
    )

    async def answer(request: Request) -> Response:
        person = await forms.token_holder(request, Role.OPERATOR)
        name = request.path_params["name"]
        sent = await in_turn(request, json_body.read, SentReturn, await request.body())

        def returned(person: Person) -> dict[str, str]:
            return {"testbox": name, "was": resume(name, sent, person)}

        return await answer_once(forms, threads, request, person, returned)

    return acts.routes("/testbox/{name}/resume", act, answer, threads)
