"""/metrics as Prometheus asks for it, of a service that has refused one request."""

from __future__ import annotations

import sqlalchemy as sa
from starlette.applications import Starlette
from starlette.testclient import TestClient

from swingbot.app.keep.host_metrics import metrics
from swingbot.app.settings import Settings
from swingbot.web.access.request_limits import Traffic
from tests.buildbot.lab import eventually


def scraped(settings: Settings, engine: sa.Engine) -> tuple[str, str]:
    """(content type, body)."""
    traffic = Traffic(200)
    traffic.refused[429] += 1
    client = TestClient(Starlette(routes=metrics(settings, engine, traffic).routes()))

    def counted() -> bool:
        return "swingbot_artifact_bytes" in client.get("/metrics").text

    eventually("the artifacts are counted, in the background", counted)
    answer = client.get("/metrics")
    assert answer.status_code == 200
    return answer.headers["content-type"], answer.text
