"""/metrics as Prometheus asks for it."""

from __future__ import annotations

import sqlalchemy as sa
from starlette.applications import Starlette
from starlette.testclient import TestClient

from swingbot.app.keep.host_metrics import metrics
from swingbot.app.settings import Settings


def scraped(settings: Settings, engine: sa.Engine) -> tuple[str, str]:
    """(content type, body)."""
    answer = TestClient(Starlette(routes=metrics(settings, engine).routes())).get("/metrics")
    assert answer.status_code == 200
    return answer.headers["content-type"], answer.text
