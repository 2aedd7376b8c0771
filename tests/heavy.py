"""`swingbot web` in a process of its own, over a boot with many samples and large files."""

from __future__ import annotations

import hashlib
import io
import os
import secrets
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx
import sqlalchemy as sa

from swingbot.adapters.artifacts import ArtifactDirectory, secret
from swingbot.app.commands.context import read_jobs
from swingbot.app.settings import Settings, load
from swingbot.app.wiring import make_lab, sync_testboxes
from swingbot.core.access.roles import Role
from swingbot.core.model.dispatch import token
from swingbot.service.watch.trees import NewTree, add_tree
from swingbot_db.engine import make_engine
from tests import builders as make
from tests import scenario
from tests.attack import copied_files
from tests.attack.hostile_repository import git
from tests.attack.target import Target
from tests.fakes.mail import brain_environment
from tests.fakes.people import a_person

SAMPLES: Final = 300_000
FILE_BYTES: Final = 48 << 20
ROWS: Final = 12_000


def _results(store: ArtifactDirectory, unit_job: str) -> tuple[str, int]:
    """Store a results.tar whose run 0 has a large file; return its sha256 and size."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, size in (("big.log", FILE_BYTES), ("small.txt", 1000)):
            entry = tarfile.TarInfo(f"{unit_job}/0/{name}")
            entry.size = size
            archive.addfile(entry, io.BytesIO(b"0123456\n" * (size // 8)))
    content = out.getvalue()
    sha256 = hashlib.sha256(content).hexdigest()
    store.put(io.BytesIO(content), sha256)
    return sha256, len(content)


def fill(conn: sa.Connection, settings: Settings) -> tuple[str, int, str]:
    """Return a boot with many samples and a large file, an attempt under way, and a table of many
    rows.
    """
    lab = scenario.a_lab(conn)
    run = conn.execute(
        sa.text(
            "SELECT id, unit_job, number FROM run WHERE boot = :boot AND status = 'ok'"
            " ORDER BY number, id LIMIT 1"
        ),
        {"boot": lab.boot},
    ).one()
    make.add_samples(
        conn,
        "SELECT :run AS run, 'vmstat.column-' || n / 1000 AS metric, n % 1000 AS seq, n AS value"
        " FROM generate_series(0, :most - 1) AS g (n)",
        {"run": run.id, "most": SAMPLES},
    )
    sha256, size = _results(ArtifactDirectory(settings.artifacts), run.unit_job)
    conn.execute(
        sa.text(
            "UPDATE boot SET files = jsonb_build_object('results.tar', jsonb_build_object("
            "'sha256', CAST(:sha256 AS text), 'size', CAST(:size AS bigint))) WHERE id = :boot"
        ),
        {"sha256": sha256, "size": size, "boot": lab.boot},
    )
    # A loop gives up an attempt of the scenario's date, and one that Buildbot does not know.
    conn.execute(
        sa.text(
            "DELETE FROM dispatch WHERE attempt IN (SELECT id FROM attempt WHERE state = 'running')"
        )
    )
    conn.execute(
        sa.text("UPDATE attempt SET created_at = clock_timestamp() WHERE state = 'running'")
    )
    attempt = conn.execute(
        sa.text("SELECT min(id) FROM attempt WHERE state = 'running'")
    ).scalar_one()
    conn.execute(
        sa.text(
            "INSERT INTO comparison_row (comparison, testbox, spec, unit_job, metric, verdict,"
            " change_pct, detail) SELECT comparison, testbox, spec, unit_job, r.metric || n,"
            " verdict, n % 97, detail || jsonb_build_object('metric', r.metric || n, 'change_pct',"
            " n % 97, 'class', 'monitor', 'headline', false) FROM (SELECT * FROM comparison_row"
            " WHERE comparison = :table LIMIT 1) r, generate_series(1, :rows) n"
        ),
        {"table": lab.comparison, "rows": ROWS},
    )
    conn.commit()
    conn.execution_options(isolation_level="AUTOCOMMIT").execute(sa.text("ANALYZE"))
    return f"x{lab.boot}", attempt, f"c{lab.comparison}"


def add_copied(engine: sa.Engine, settings: Settings) -> str:
    """Add the tree of attack `copied_files`; return the token of a submitter."""
    repo = settings.state / "copied"
    repo.mkdir(parents=True)
    git(repo, "init", "--quiet", "--bare")
    git(repo, "fast-import", "--quiet", stdin=copied_files.history())
    lab = make_lab(settings, engine)
    sync_testboxes(lab)
    tree = NewTree(
        name=copied_files.TREE,
        url=str(repo),
        branch="main",
        base="base",
        job_files=read_jobs(["vm-page-fault.yaml"], settings.paths.jobs),
        testboxes=["vm-icount"],
        paths=[],
        kconfig=settings.build.kconfig,
        compiler=settings.build.compiler,
    )
    add_tree(lab, tree)
    text = f"swingbot_{secrets.token_urlsafe(32)}"
    a_person(engine, "Stranger", Role.SUBMITTER, text)
    return text


@contextmanager
def heavy_site(db_url: str, place: Path, **environment: str) -> Iterator[Target]:
    """A service to attack, until the block ends."""
    given = brain_environment(place / "state", db_url) | environment
    settings, engine = load(environ=given), make_engine(db_url)
    with engine.connect() as conn:
        boot, attempt, table = fill(conn, settings)
    submitter = add_copied(engine, settings)
    engine.dispose()
    temporary = place / "tmp"
    temporary.mkdir()
    settings.state.mkdir(parents=True, exist_ok=True)
    bearer = {"Authorization": f"Bearer {token(secret(settings.secret_file), attempt)}"}
    with (place / "web.log").open("wb") as log:
        web = subprocess.Popen(
            [sys.executable, "-m", "swingbot.app.cli", "web"],
            env={**os.environ, **given, "TMPDIR": str(temporary)},
            stdout=log,
            stderr=log,
        )
    target = Target(
        port=settings.web.port,
        pid=web.pid,
        boot=boot,
        table=table,
        state=settings.state,
        temporary=temporary,
        submitter=submitter,
        database=db_url,
        attempt=f"a{attempt}",
        worker=bearer,
    )
    try:
        _wait(target, web)
        yield target
    finally:
        web.terminate()
        web.wait(20)


def _wait(target: Target, web: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 300  # on a busy machine
    while True:
        try:
            httpx.get(f"{target.url}/healthz", timeout=5, trust_env=False)
            return
        except httpx.HTTPError:
            assert web.poll() is None, "the web service ended at once"
            assert time.monotonic() < end, "the web service does not answer"
            time.sleep(0.1)
