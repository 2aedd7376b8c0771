"""`make demo` with another seed, and what a user finds while its service still runs."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from swingbot.app import postgres
from swingbot.app.tcp_ports import free_ports
from swingbot_db.engine import make_engine
from swingbot_jobs.contract.orders import check_order
from swingbot_worker.site import from_environment
from tests import clean_root
from tests.dashboards import ask
from tests.demo.tree import Repository
from tests.kernels import demo_repository

SEED = "7"
MINUTES = 45
pytestmark = pytest.mark.timeout((MINUTES + 15) * 60)
BIN = Path(sys.executable).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    result: dict[str, Any]
    output: str
    url: str
    state: Path
    environment: dict[str, str]

    def get(self, path: str) -> str:
        with urllib.request.urlopen(f"{self.url}{path}", timeout=30) as answer:
            return str(answer.read().decode())

    def cli(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [BIN / "swingbot", *words], env=self.environment, capture_output=True, text=True
        )


@pytest.fixture(scope="module")
def demo() -> Iterator[Demo]:
    """The demo, run to its table; its service goes on until the tests are over."""
    # not below pytest's directory: each pytest that starts closes that to the database's user
    place = Path(tempfile.mkdtemp(prefix="swingbot-demo-", dir="/tmp"))
    place.chmod(0o755)
    port = free_ports(18010, 4)
    result, state = place / "result.json", place / "state"
    environment = {
        **os.environ,
        "SEED": SEED,
        "DEMO_PORT": str(port),
        "DEMO_STATE": str(state),
        "DEMO_RESULT": str(result),
        "DEMO_EXIT": "0",
    }
    log = place / "demo.log"
    with log.open("w") as sink:
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.demo.demo"],
            env=environment,
            stdout=sink,
            stderr=subprocess.STDOUT,
        )
    try:
        end = time.monotonic() + MINUTES * 60
        while not result.exists():
            assert child.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(1)
        talk = {**os.environ, "SWINGBOT_PATHS_STATE": str(state), "SWINGBOT_WEB_PORT": str(port)}
        yield Demo(
            result=json.loads(result.read_text()),
            output=log.read_text(),
            url=f"http://127.0.0.1:{port}",
            state=state,
            environment=talk,
        )
        child.send_signal(signal.SIGINT)
        assert child.wait(90) == 0, log.read_text()
    finally:
        print(log.read_text())
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
            child.wait(90)
        shutil.rmtree(place, ignore_errors=True)


def test_the_mail_names_the_planted_commit_and_no_other(demo: Demo) -> None:
    assert demo.result["right"], demo.output
    assert demo.result["mails"] == 1


def test_the_mail_is_short_and_says_what_a_reader_needs(demo: Demo) -> None:
    (mail,) = (demo.state / "maildir" / "new").iterdir()
    text = mail.read_text()
    assert len(text.encode()) <= 10 * 1024
    assert (
        max(len(line) for line in text.split("\n\n", 1)[1].splitlines() if "http://" not in line)
        <= 78
    )
    for wanted in (
        "worse",
        "95% interval",
        "boots",
        "runs",
        "+-",
        "Not checked",
        "To reproduce",
        "emulated",
        "Sent by a bot",
    ):
        assert wanted in text, f"the mail does not say {wanted!r}"


def test_every_gate_has_an_answer_and_its_reason(demo: Demo) -> None:
    gates = {
        gate["gate"]: gate
        for gate in json.loads(demo.cli("proof", "show", "i1", "--json").stdout)["gates"]
    }
    assert {
        name: gates[name]["status"] for name in ("reproduced", "tip", "code", "facts")
    } == dict.fromkeys(("reproduced", "tip", "code", "facts"), "pass")
    assert all(
        gate["status"] != "running" and (gate["reason"] or gate["status"] == "pass")
        for gate in gates.values()
    )
    assert (
        gates["layout"]["reason"]
        == gates["executed"]["reason"]
        == "left out by the setting proof.gates"
    )
    assert gates["revert"]["status"] == "pass" or gates["revert"]["reason"].startswith(
        "conflict in "
    )


def test_every_page_and_its_json_answer(demo: Demo) -> None:
    incident = json.loads(demo.get("/incident/i1.json"))
    pages = [
        "/",
        "/comparison/c2",
        f"/bisection/{incident['bisections'][0]}",
        "/incident/i1",
        "/report/r1",
        "/order/o1",
        "/testbox/vm-icount",
        "/tree/demo",
    ]
    for page in pages:
        assert "<html" in demo.get(page).lower()
        if page != "/":
            json.loads(demo.get(f"{page}.json"))
    for page in (
        "/mailbox",
        "/comparisons",
        "/bisections",
        "/reports",
        "/orders",
        "/testboxes",
        "/raw/c2/",
        "/healthz",
    ):
        assert demo.get(page)
    with pytest.raises(urllib.error.HTTPError, match="404"):
        demo.get("/comparison/c9999")


def test_raw_results_of_both_sides_can_be_taken_home(demo: Demo, tmp_path: Path) -> None:
    done = demo.cli("raw", "c2", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.rglob("results.tar"))) >= 6
    assert "netperf.Throughput_Mbps" in (tmp_path / "samples.csv").read_text()


def test_what_the_mail_says_to_reproduce_gives_the_same_numbers_where_nothing_of_ours_is(
    demo: Demo, tmp_path: Path
) -> None:
    """The kit from the mail's address, in a root file system of a shell, tar, awk and QEMU: one
    boot of each kernel."""
    body = json.loads(demo.get("/report/r1.json"))["body"]
    (line,) = [line for line in body.splitlines() if "curl" in line]
    url = next(word for word in line.split() if word.startswith("http"))
    done = replayed(demo, tmp_path, url.removeprefix(demo.url), "swingbot-r1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "numbers of the repeated boots equal the reported ones" in done.stdout


def replayed(
    demo: Demo, place: Path, path: str, directory: str
) -> subprocess.CompletedProcess[str]:
    """Replay the kit at a path, one boot per kernel, in a root without swingbot."""
    with urllib.request.urlopen(f"{demo.url}{path}", timeout=120) as answer:
        (place / "kit.tar.gz").write_bytes(answer.read())
    subprocess.run(["tar", "-xzf", "kit.tar.gz"], cwd=place, check=True)
    root, netperf = (
        clean_root.make(place / "root"),
        from_environment().cache / "debian" / "netperf",
    )
    # Debian's netperf is non-free: whoever reproduces must install it
    binds = {place / directory: "/kit", netperf.resolve(): "/netperf"}
    return clean_root.run(
        root,
        "cd /kit && ./reproduce.sh --boots 1 --programs /netperf --out /tmp/out",
        binds=binds,
        timeout=800,
    )


def test_an_experiment_puts_the_parent_the_culprit_and_the_tip_into_one_table(
    demo: Demo, tmp_path: Path
) -> None:
    """Three kernels that the demo has built, so only boots are needed, each against the first.

    In a root without swingbot, the kit reproduces the same numbers.
    """
    culprit = json.loads(demo.get("/incident/i1.json"))["culprit"]["commit"]
    parent = Repository(demo_repository(from_environment())).commit_id(f"{culprit}^")
    assert parent is not None
    named = ("--variant", f"culprit={culprit}", "--variant", f"tip=mm-demo-{SEED}")
    kernels = ("--base", parent, *named)
    where = ("--tree", "demo", "--job", "vm-netperf-udp.yaml", "--boots", "3")
    asked = demo.cli("experiment", *kernels, *where, "--against", "first", "--yes", "--json")
    assert asked.returncode == 0, asked.stderr
    number = json.loads(asked.stdout)["id"]
    over = demo.cli("wait", number, "--timeout", str(60 * MINUTES))
    assert over.returncode == 0, over.stdout + over.stderr
    rows = {
        row["kernel"]: row
        for row in csv.DictReader(io.StringIO(demo.cli("show", number, "--format", "csv").stdout))
        if row["metric"] == "netperf.Throughput_Mbps"
    }
    assert list(rows) == [parent[:12], "culprit", "tip"]
    assert [row["boots"] for row in rows.values()] == ["3", "3", "3"]
    for name in ("culprit", "tip"):
        assert (rows[name]["reference"], rows[name]["verdict"]) == (parent[:12], "worse")
        assert float(rows[name]["mean"]) < 0.95 * float(rows[parent[:12]]["mean"])
    table = demo.cli("show", number, "--format", "changelog").stdout
    assert "Changes are relative to the first row." in table
    assert f"{float(rows['culprit']['change_pct']):+.1f}%" in table
    kit = f"/experiment/{number}/reproduce.tar.gz"
    done = replayed(demo, tmp_path, kit, f"swingbot-{number}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "numbers of the repeated boots equal the reported ones" in done.stdout
    for name in ("culprit", "tip"):
        assert re.search(rf"^{name} .* -\d.* -\d.*\(the first row\)$", done.stdout, re.M)


def test_an_order_of_a_boot_is_one_that_a_worker_takes(demo: Demo, tmp_path: Path) -> None:
    order = tmp_path / "order.json"
    order.write_text(demo.get("/raw/x1/order.json"))
    taken = check_order(json.loads(order.read_text()))
    assert (taken["kind"], taken["testbox"]) == ("boot", "vm-icount")


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("compare", "base", "nosuch", "--tree", "demo"), 2, "nosuch"),
        (("compare", "base", "tip", "--tree", "nosuch"), 2, "nosuch"),
        (("compare", "base", "tip", "--tree", "demo", "--testbox", "toaster"), 2, "toaster"),
        (
            ("bisect", "start", "base..tip", "--tree", "demo", "--metric", "netperf.Bananas"),
            2,
            "netperf.Bananas",
        ),
        (
            (
                "tree",
                "add",
                "other",
                "/nowhere",
                "--branch",
                "b",
                "--base",
                "b",
                "--job",
                "vm-netperf.yaml",
            ),
            2,
            "/nowhere",
        ),
        (("show", "c9999"), 2, "c9999"),
        (("wait", "r1"), 2, "cannot wait for report r1; give a comparison"),
    ],
)
def test_wrong_questions_get_one_sentence(
    demo: Demo, words: tuple[str, ...], status: int, message: str
) -> None:
    done = demo.cli(*words)
    assert done.returncode == status, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_every_dashboard_query_works_on_what_the_demo_measured(demo: Demo) -> None:
    engine = make_engine(postgres.url(demo.state))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
        counts = ask(conn)
    assert len(counts) > 25
    assert sum(1 for rows in counts.values() if rows) > 20, counts
