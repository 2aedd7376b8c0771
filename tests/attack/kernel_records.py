"""The largest records that are accepted, left by the kernels of a comparison that is asked for."""

from __future__ import annotations

import hashlib
import io
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import httpx
import sqlalchemy as sa

from swingbot.adapters.artifacts import ArtifactDirectory
from swingbot_db.engine import make_engine
from swingbot_jobs.kernel_diff import FILE
from tests.attack.hostile_records import largest_record
from tests.attack.target import Result, Target, skipped

NAME: Final = "kernel-records"
WANTED: Final = "the page says that they cannot be used; the web service does not grow"
GROWTH: Final = 64 << 20


def run(target: Target) -> Result:
    """Leave the records, then ask for page and JSON of the comparison."""
    if target.state is None or target.pid is None or not target.database:
        return skipped("give --state and --fill")
    path = f"/comparison/{target.table}"
    with httpx.Client(base_url=target.url, timeout=600, trust_env=False) as client:
        client.get(path)  # loads templates
        arms = client.get(f"{path}.json").json()["arms"]
        _leave(target, [arm["variant"]["build_key"] for arm in arms])
        before = most = target.resident()
        with ThreadPoolExecutor() as threads:
            asked = [threads.submit(client.get, one) for one in (path, f"{path}.json")]
            while not all(one.done() for one in asked):
                most = max(most, target.resident())
        answers = [one.result() for one in asked]
    held = all(answer.status_code == 200 and "cannot be used" in answer.text for answer in answers)
    grown = most - before
    statuses = ", ".join(str(answer.status_code) for answer in answers)
    return Result(held and grown < GROWTH, f"{statuses}; {grown >> 20} MiB more")


def _leave(target: Target, keys: list[str]) -> None:
    assert target.state is not None
    store, engine = ArtifactDirectory(target.state / "artifacts"), make_engine(target.database)
    with engine.begin() as conn:
        for key in dict.fromkeys(keys):
            content = largest_record(key)
            sha256 = hashlib.sha256(content).hexdigest()
            store.put(io.BytesIO(content), sha256)
            files = json.dumps({FILE: {"sha256": sha256, "size": len(content)}})
            left = "UPDATE kernel_build SET files = files || CAST(:files AS jsonb)"
            conn.execute(sa.text(f"{left} WHERE build_key = :key"), {"files": files, "key": key})
    engine.dispose()
