"""`make demo`: a branch gets twenty commits, one of which slows a benchmark down.

Swingbot finds it and a mail names it.

Only the inputs are the demo's own: a repository and a moment at which its branch moves.
Everything else is the service as anyone runs it, started by `swingbot up` and asked through the
ordinary command line.

Environment: SEED (1), WORKLOAD (allocator; swap: reclaim on vm-mm), PLANT (by seed; a plant of
plants.yaml, none), TREE and BASE (another kernel to put the series on), DEMO_EXIT=1 (stop at the
end), DEMO_PORT (8010), DEMO_STATE (a directory that is emptied first), DEMO_RESULT (file for one
line of JSON).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import default
from pathlib import Path
from typing import Any, Final

from swingbot.app.tcp_ports import free_ports
from swingbot.core.model import ids
from swingbot_worker.site import from_environment
from tests.demo import process
from tests.demo.estimates import EstimateLog
from tests.demo.tree import (
    Series,
    TreeError,
    make_base,
    make_series,
    plant_of_seed,
    use_tree,
    workload,
)
from tests.kernels import demo_repository

# Not here: aligned functions and counted calls, which take two nearly full builds each;
# `swingbot proof run i1 --gate layout` asks for them.
PROOF: Final = "reproduced,tip,series,revert,code,facts,elsewhere"
TREE_NAME: Final = "demo"
UP_SECONDS: Final = 180.0
BUSY_SECONDS: Final = 120.0
GIVE_UP_SECONDS: Final = 5400.0
SWINGBOT: Final = [sys.executable, "-m", "swingbot.app.cli"]


class DemoError(Exception):
    """The demo cannot go on; one sentence."""


@dataclass
class Clock:
    """Wall time per stage, and lines with the time elapsed in front."""

    began: float = field(default_factory=time.monotonic)
    stages: list[tuple[str, float]] = field(default_factory=list)
    last_line: str = ""

    def say(self, line: str) -> None:
        if line != self.last_line:
            elapsed = int(time.monotonic() - self.began)
            print(f"[{elapsed // 60:2}:{elapsed % 60:02}] {line}", flush=True)
            self.last_line = line

    def stage(self, name: str) -> None:
        """End the stage that has been going on since the last call, under this name."""
        spent = sum(seconds for _, seconds in self.stages)
        self.stages.append((name, time.monotonic() - self.began - spent))


@dataclass
class Service:
    """The embedded service in a child process, and the command line that talks to it."""

    state: Path
    port: int
    environment: Mapping[str, str]
    child: subprocess.Popen[str] | None = None
    estimates: EstimateLog = field(default_factory=EstimateLog)

    def start(self) -> None:
        log = (self.state.parent / f"{self.state.name}.log").open("w")
        self.child = subprocess.Popen(
            [*SWINGBOT, "up"],
            env=self.environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        end = time.monotonic() + UP_SECONDS
        while "swingbot is up" not in (said := Path(log.name).read_text()):
            if self.child.poll() is not None or time.monotonic() > end:
                raise DemoError(f"the service did not come up:\n{said}")
            time.sleep(0.2)

    def stop(self) -> None:
        if self.child is not None and self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
            try:
                self.child.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(self.child.pid, signal.SIGKILL)

    def ask(self, *words: str) -> str:
        done = subprocess.run(
            [*SWINGBOT, *words], env=self.environment, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise DemoError(
                f"swingbot {' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}"
            )
        return done.stdout

    def facts(self, page: str) -> Any:
        """The JSON of a page: what `--json` prints, without a process for each look.

        A service that is busy (503) is asked again for a while.
        """
        end = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                with urllib.request.urlopen(
                    f"http://127.0.0.1:{self.port}/{page}.json", timeout=60
                ) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                if error.code != 503 or time.monotonic() > end:
                    raise
                time.sleep(2)


def main() -> int:
    """0 if the mail names the planted commit, its metric and no other commit (PLANT=none: if there
    is no mail).
    """
    return to_the_end(_play)


def _play(clock: Clock, start: Callable[..., Service]) -> int:
    watched = os.environ.get("WORKLOAD") or "allocator"
    repo, series = make_inputs(clock, watched)
    return run(clock, start(), repo, series, workload(watched))


def to_the_end(play: Callable[[Clock, Callable[..., Service]], int]) -> int:
    """The exit status of `play`, which gets a clock and how to start a service (`make_service`'s
    names).

    Errors are one sentence and status 1, an interruption is 130; whatever happens,
    the service is stopped.
    """
    clock = Clock()
    service: Service | None = None

    def start(*names: str) -> Service:
        nonlocal service
        service = make_service(clock, *names)
        clock.say("starting the service")
        service.start()
        clock.stage("service start")
        return service

    interruptible()
    try:
        return play(clock, start)
    except (DemoError, TreeError, process.CommandError, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        if service is not None:
            service.stop()


def interruptible() -> None:
    """End in an orderly way on SIGINT and SIGTERM, also where a shell started us with SIGINT
    ignored.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def make_inputs(clock: Clock, watched: str) -> tuple[Path, Series]:
    site, seed = from_environment(), int(os.environ.get("SEED") or "1")
    plant = os.environ.get("PLANT") or plant_of_seed(seed, watched)
    url = os.environ.get("TREE")
    if url:
        if not os.environ.get("BASE"):
            raise DemoError("TREE needs BASE=<branch, tag or commit> to put the series on")
        repo = site.cache / "demo-tree" / "other.git"
        use_tree(repo, url, os.environ["BASE"], clock.say)
    else:
        repo = demo_repository(site)
        make_base(repo, site.cache, clock.say)
    series = make_series(repo, seed, plant, progress=clock.say)
    clock.say(
        f"the series: {len(series.commits)} commits on {series.base[:12]}, seed {seed},"
        f" plant {series.plant}"
    )
    clock.stage("repository and series")
    return repo, series


def make_service(clock: Clock, name: str = "swingbot-demo") -> Service:
    """A service to start, its state emptied. Raises DemoError where the state is something else."""
    home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    state = Path(os.environ.get("DEMO_STATE") or home / name).absolute()
    if state.exists():
        if not (state / "artifacts").exists() and any(state.iterdir()):
            raise DemoError(
                f"{state} is not empty and not a swingbot state directory; give another DEMO_STATE"
            )
        shutil.rmtree(state)
    state.mkdir(parents=True)
    port = free_ports(int(os.environ.get("DEMO_PORT") or "8010"), 4)
    wanted = {
        "SWINGBOT_PATHS_STATE": str(state),
        "SWINGBOT_WEB_PORT": str(port),
        "SWINGBOT_MAIL_RELEASE": "release",
        "SWINGBOT_MAIL_VIRTUAL_TESTBOXES": "vm-*",
        "SWINGBOT_WATCH_POLL_SECONDS": "30",
    }
    wanted["SWINGBOT_PROOF_GATES"] = os.environ.get("SWINGBOT_PROOF_GATES") or PROOF
    return Service(state=state, port=port, environment={**os.environ, **wanted})


def run(
    clock: Clock, service: Service, repo: Path, series: Series, watched: Mapping[str, Any]
) -> int:
    branch = f"mm-demo-{series.seed}"
    set_branch(repo, branch, series.base)
    clock.say("registering the tree, with its branch still at the base")
    words = ["--branch", branch, "--base", series.base, "--testbox", watched["testbox"]]
    words += [word for job in watched["jobs"] for word in ("--job", job)]
    service.ask("tree", "add", TREE_NAME, str(repo), *words)
    follow(clock, service, "base", lambda: _comparison_over(service, 0))
    clock.stage("base: build and boots")
    set_branch(repo, branch, series.tip)
    clock.say(f"the branch moves to {series.tip[:12]}, {len(series.commits)} commits further")
    service.ask("tree", "poll", TREE_NAME)
    follow(clock, service, "tip", lambda: _comparison_over(service, 1))
    clock.stage("tip: build, boots, comparison")
    follow(clock, service, "search", lambda: _idle(service))
    clock.stage("bisection, proof and mail")
    return judge(clock, service, series)


def set_branch(repo: Path, branch: str, commit: str) -> None:
    subprocess.run(
        [
            "git",
            "-c",
            "safe.directory=*",
            "-C",
            str(repo),
            "update-ref",
            f"refs/heads/{branch}",
            commit,
        ],
        check=True,
    )


def _comparison_over(service: Service, number: int) -> bool:
    watched = sorted(
        (c for c in service.facts("comparisons") if c["kind"] == "watch"),
        key=lambda c: int(c["id"][1:]),
    )
    if len(watched) <= number:
        return False
    if watched[number]["status"] == "failed":
        raise DemoError(f"comparison {watched[number]['id']} failed: {watched[number]['reason']}")
    return bool(watched[number]["status"] == "done")


def _idle(service: Service) -> bool:
    """Nothing is open and nothing will be: what was promised to be mailed has left."""
    return bool(service.facts("status")["idle"])


def follow(clock: Clock, service: Service, what: str, over: Callable[[], bool]) -> None:
    """Show what goes on until it is over, or nothing has moved for GIVE_UP_SECONDS."""
    end, before = time.monotonic() + GIVE_UP_SECONDS, ""
    while not over():
        line = _progress(service)
        if (moved := re.sub(r" \(slow: [^)]*\)|, about \d+ s left", "", line)) != before:
            end, before = time.monotonic() + GIVE_UP_SECONDS, moved
        if time.monotonic() > end:
            raise DemoError(
                f"{what}: nothing has moved for {GIVE_UP_SECONDS:.0f} s;"
                f" look at http://127.0.0.1:{service.port}/"
            )
        clock.say(f"{what}: {line}")
        time.sleep(1)


def _progress(service: Service) -> str:
    status = service.facts("status")
    service.estimates.note(status)
    parts = []
    for job in status["running"]:
        if job["queued"]:
            continue
        where = "building" if job["kind"] == "build" else f"booting on {job.get('testbox')}"
        parts.append(f"{where} {(job.get('commit') or '')[:12]}{_slow()}")
    for c in status["tables"]:
        done = c["progress"]
        parts.append(
            f"{c['id']} {done['builds']}/{done['builds_total']} kernels"
            f" {done['boots']}/{done['boots_total']} boots{_left(c)}"
        )
    for b in status["bisections"]:
        best = max(b["candidates"], key=lambda c: c["probability"] or 0)
        parts.append(
            f"{b['id']} {b.get('phase') or 'start'}: {b['boots']} boots,"
            f" best {best['commit'][:12]} {100 * (best['probability'] or 0):.0f} %{_left(b)}"
        )
    return "; ".join(parts) or "waiting"


def _slow() -> str:
    """Why work takes longer than usual on this host; empty if it does not."""
    load, processors = os.getloadavg()[0], len(os.sched_getaffinity(0))
    return f" (slow: load {load:.0f} on {processors} processors)" if load > 2 * processors else ""


def _left(facts: Mapping[str, Any]) -> str:
    return (
        f", about {round(facts['eta_seconds'] / 10) * 10} s left"
        if facts.get("eta_seconds")
        else ""
    )


def judge(clock: Clock, service: Service, series: Series) -> int:
    """Print the mail, where to look, what it took; say whether the right commit was named."""
    mails = [
        BytesParser(policy=default).parsebytes(path.read_bytes())
        for path in sorted((service.state / "maildir" / "new").glob("*"))
    ]
    culprit_and_metric = True
    for mail in mails:
        body = mail.get_body(preferencelist=("plain",))
        text = body.get_content() if body else ""
        print(
            f"\n{'-' * 78}\nSubject: {mail['Subject']}\nTo: {mail['To']}\n"
            f"Message-ID: {mail['Message-ID']}\n\n{text}{'-' * 78}"
        )
        culprit_and_metric &= str(series.culprit)[:12] in mail["Subject"]
        culprit_and_metric &= str(series.metric) in mail["Subject"] + text
    incidents = service.facts("incidents")
    named = {incident["culprit"]["commit"] for incident in incidents}
    right = named == ({series.culprit} if series.culprit else set()) and len(mails) == (
        1 if series.culprit else 0
    )
    right = right and culprit_and_metric
    bisections = [service.facts(f"bisection/{b['id']}") for b in service.facts("bisections")]
    numbers = _numbers(service, bisections)
    print(
        f"\npages     http://127.0.0.1:{service.port}/\n"
        f"Buildbot  http://127.0.0.1:{service.port + 1}/\n"
        f"mailbox   http://127.0.0.1:{service.port}/mailbox\n"
    )
    for name, seconds in [*clock.stages, ("in all", sum(s for _, s in clock.stages))]:
        print(f"{name:32}{seconds:8.0f} s")
    print(f"{'kernels built / from the cache':32}{numbers['built']:8} / {numbers['cached']}")
    print(f"{'boots':32}{numbers['boots']:8}\n{'runs':32}{numbers['runs']:8}")
    print("\n".join(service.estimates.table(lambda id: service.facts(_page_of(id))["ended_at"])))
    for b in bisections:
        print(
            f"{b['id']} {b['metric']}: {b['status']}"
            + (
                f", culprit {b['culprit']['commit'][:12]} with probability {b['probability']:.4f}"
                if b.get("culprit")
                else ""
            )
        )
    verdict = "as planted" if right else "WRONG"
    planted, found = (
        series.culprit[:12] if series.culprit else "nothing",
        ", ".join(c[:12] for c in sorted(named)) or "nothing",
    )
    print(f"\nplanted: {planted}; named: {found}; mails: {len(mails)}: {verdict}")
    if path := os.environ.get("DEMO_RESULT"):  # whole or not at all: a test waits for it
        line = {
            "seed": series.seed,
            "plant": series.plant,
            "right": right,
            "mails": len(mails),
            "seconds": round(sum(s for _, s in clock.stages)),
            **numbers,
        }
        half = Path(f"{path}.half")
        half.write_text(
            json.dumps(
                {
                    **line,
                    "bisections": [b["status"] for b in bisections],
                    "stages": dict(clock.stages),
                }
            )
            + "\n"
        )
        half.rename(path)
    if os.environ.get("DEMO_EXIT") != "1":
        print("\nthe service goes on; Ctrl-C stops it", flush=True)
        with suppress(KeyboardInterrupt):
            signal.pause()
    return 0 if right else 3


def _page_of(id: str) -> str:
    return f"{ids.read(id)[0]}/{id}"


def _numbers(service: Service, bisections: list[Any]) -> dict[str, int]:
    return {
        **service.facts("status")["totals"],
        "bisection_boots": sum(b["boots"] for b in bisections),
    }


if __name__ == "__main__":
    sys.exit(main())
