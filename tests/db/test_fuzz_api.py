"""Requests that Schemathesis makes of the description of the API, half of them about what the
service has: the answers are those that the description promises.

For longer: SWINGBOT_TEST_ALL=1, or Schemathesis' own command on a service of yours:

    schemathesis run http://127.0.0.1:8010/api/v1/openapi.json --max-examples 1000 \
        --header 'Authorization: Bearer TOKEN' --header 'Accept: application/json' \
        --exclude-checks positive_data_acceptance,unsupported_method
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from swingbot.core.access.roles import Role
from swingbot.core.model.ids import KINDS, LETTERS
from swingbot.web.api.operations import OPERATIONS
from tests.amount import examples
from tests.database import fresh
from tests.fakelinux import FakeCommit, add_commits, make_fakelinux
from tests.fakes.brain import make_brain
from tests.fakes.loop import METRIC
from tests.fakes.mail import running_smtpd
from tests.postgres import Server
from tests.served import Served, served

# `schemathesis.APIOperation` and `schemathesis.Case`.
Operation: TypeAlias = Any
Case: TypeAlias = Any
CHECKS: Final = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def site(pg: Server, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service whose tree has a culprit: a table, a bisection, an incident and a report."""
    place = tmp_path_factory.mktemp("api")
    rates = {"SWINGBOT_WEB_RATE": "0", "SWINGBOT_WEB_WRITE_RATE": "0"}
    with fresh(pg, template) as url, served(url, place, filled=False, **rates) as one:
        base = make_fakelinux(place / "linux", [])[0]
        brain = make_brain(one.settings, one.engine, place / "linux")
        with running_smtpd(one.settings):
            brain.watch(base)
            brain.run()
            broken, slow = FakeCommit(kind="broken"), FakeCommit(speed=88)
            add_commits(brain.repo, [*[FakeCommit()] * 3, slow, broken, FakeCommit()])
            brain.poll()
            brain.run()
        yield one


@dataclass(frozen=True, kw_only=True)
class Known:
    """Values that the service has: by the name of a parameter, and bodies by the path of their
    operation.
    """

    values: Mapping[str, Sequence[str]]
    bodies: Mapping[str, dict[str, Any]]

    def of(self, path: str, name: str) -> Sequence[str]:
        kind = "stopped" if path == "/bisection/{id}/resume" else path.split("/")[1]
        key = kind if name == "id" else f"{kind} {name}" if name == "name" else name
        return self.values.get(key, ())


def asked(site: Served, headers: dict[str, str]) -> Known:
    """Ask for a comparison, an experiment and a bisection, and return what there is then."""
    kernels: dict[str, Any] = {"tree": "fake", "base": "base", "head": "tip"}
    search = {"tree": "fake", "range": "base..tip", "metric": METRIC, "set": {"runs": "3"}}
    doors = {
        "/compare": kernels | {"boots": 7, "private_to": ["me"]},
        "/experiment": kernels
        | {"boots": 9, "against": ["base"], "with": ["size"], "private_to": ["me"]},
        "/bisect": search | {"job": ["vm-page-fault.yaml"]},
    }
    values = {kind: [f"{letter}2", f"{letter}1"] for kind, letter in LETTERS.items()}
    for path, body in doors.items():
        answer = site.client.post(path, json=body, headers=headers)
        assert answer.status_code == 201, answer.text
        id = answer.json()["id"]
        values[KINDS[id[0]]][1] = id
    other = doors["/bisect"] | {"set": {"runs": "4"}}
    stopped = site.client.post("/bisect", json=other, headers=headers).json()["id"]
    answer = site.client.post(f"/bisection/{stopped}/cancel", json={}, headers=headers)
    assert answer.status_code == 200, answer.text
    values["stopped"] = [stopped]
    boot = site.client.get("/boot/x1.json").json()
    bisection = site.client.get(f"/bisection/{values['bisection'][1]}.json").json()
    values |= {
        "raw": ["x1", "c1", "b1"],
        "tree name": ["fake"],
        "testbox name": ["vm-icount"],
        "build_key": [boot["build_key"]],
        "tree": ["fake"],
        "testbox": ["vm-icount"],
        "metric": [METRIC, "perf-stat.task-clock"],
        "unit_job": sorted({run["unit_job"] for run in boot["runs"]}),
        "kernel": ["base", "tip", boot["variant"]],
        "mail": ["<1@example.org>"],
        "code": ["mm/memory.c", boot["commit"][:12]],
        "q": [METRIC, boot["commit"][:12]],
        "limit": ["1", "500"],
    }
    plan, steered = {"dry_run": True}, {"commits": [bisection["candidates"][1]["commit"]]}
    bodies = {path: body | plan for path, body in doors.items()} | {
        "/comparison/{id}/extend": {"boots": 2} | plan,
        "/experiment/{id}/extend": {"boots": 2} | plan,
        "/bisection/{id}/skip": steered | {"why": "hangs"},
        "/bisection/{id}/resume": {"boots": 3} | plan,
        "/bisection/{id}/hint": steered | {"factor": 2.0},
        "/incident/{id}/decide": {"act": "reopen"},
        "/report/{id}/decide": {"act": "release"},
        "/incident/{id}/prove": {"gates": ["tip"], "dry_run": True},
        "/outbox/switch": {"stopped": False, "reason": "over"},
        "/testbox/{name}/resume": {"condition": None},
        "/commits/known": {"commits": [boot["commit"]], "tree": "fake"},
    }
    return Known(values=values, bodies=bodies)


@st.composite
def requests(draw: st.DrawFn, operation: Operation, has: Known) -> Case:
    """A request as its schema allows, with some values that the service has."""
    case: Case = draw(operation.as_strategy())
    for part in (case.path_parameters, case.query):
        for name in sorted(part):
            if (values := has.of(operation.path, name)) and draw(st.integers(0, 3)) > 0:
                part[name] = draw(st.sampled_from(list(values)))
    body = has.bodies.get(operation.path)
    if body is not None and isinstance(case.body, dict) and draw(st.integers(0, 3)) > 0:
        changed = draw(st.sets(st.sampled_from(sorted({*body, *case.body})), max_size=2))
        case.body = {name: value for name, value in body.items() if name not in changed} | {
            name: case.body[name] for name in sorted(changed) if name in case.body
        }
    return case


def usual(operation: Operation, has: Known) -> Case:
    """A request that the service can do, as people send it."""
    names = [one.name for one in operation.path_parameters]
    sent: dict[str, Any] = {}
    if operation.path in has.bodies:
        sent = {"body": has.bodies[operation.path], "media_type": "application/json"}
    return operation.Case(
        path_parameters={name: has.of(operation.path, name)[-1] for name in names}, **sent
    )


def faults_of(operation: Operation, has: Known, headers: dict[str, str]) -> Iterator[str]:
    """Answers that the description does not promise, one at most."""

    def ask_for(case: Case) -> tuple[int, str]:
        answer = case.call(headers=headers)
        case.validate_response(answer, checks=CHECKS, headers=headers)
        return int(answer.status_code), answer.text

    @seed(20)
    @settings(
        max_examples=examples(33),
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(requests(operation, has))
    def ask(case: Case) -> None:
        ask_for(case)

    try:
        if operation.method == "post":
            status, text = ask_for(usual(operation, has))
            if status != 200 and "which is sent" not in text:  # the mail of this service's report
                yield f"{operation.label}: {status} for what people send: {text}"
        ask()
    except (Exception, FailureGroup) as error:
        yield f"{operation.label}: {error}"


def test_answers_are_those_of_the_description(site: Served) -> None:
    headers = site.token("Fia", Role.OPERATOR) | {"Accept": "application/json"}
    has = asked(site, headers)
    schema = schemathesis.openapi.from_url(f"http://127.0.0.1:{site.port}/api/v1/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    assert len(operations) == len(OPERATIONS)
    faults = [fault for one in operations for fault in faults_of(one, has, headers)]
    assert not faults, "\n\n".join(faults)
