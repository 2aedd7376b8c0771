"""One boot from order to outcome, whatever the driver."""

from __future__ import annotations

import hashlib
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from swingbot_jobs.contract.fact_sheet import FACT_LENGTH, facts_of, not_as_demanded
from swingbot_jobs.contract.orders import SEARCH
from swingbot_jobs.contract.trust import accepted, trust_of
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.printable import printable
from swingbot_jobs.reading.parse import read_results
from swingbot_jobs.reading.result import Results
from swingbot_jobs.testbox.box import ClusterDriver, CommandDriver, QemuDriver, Testbox
from swingbot_jobs.testbox.file import load_file
from swingbot_jobs.testbox.table import TestboxError
from swingbot_worker import InfraError, OrderError, engine, lease
from swingbot_worker.site import Site
from swingbot_worker.testbox import cluster, command, host, ssh, virtual
from swingbot_worker.testbox.limits import limits
from swingbot_worker.testbox.request import Boot, Fact, Request, TellPhase, tell_nobody

FILES = (
    "console.log",
    "results.tar",
    "qemu.log",
    "driver.log",
    "job.sh",
    "job.cpio",
    "qemu.json",
    "rootfs.json",
    *cluster.FILES,
)
REASON_LENGTH = 2000


def boot(
    order: dict[str, Any], out: Path, site: Site, tell_phase: TellPhase = tell_nobody
) -> dict[str, Any]:
    """Boot the kernel that `order` (order-1 schema) names, once, and run its unit jobs; returns the outcome (outcome-1 schema).

    console.log, results.tar, job.sh and the driver's log come into `out`. What the kernel does is a status of the outcome;
    a fault of ours is status `infra`. No exception leaves for either.
    """
    started, stolen = time.monotonic(), host.stolen_ticks()
    out = out.absolute()
    try:
        request = _request(order, out, site, tell_phase)
        made = _boot(request)
        results = read_results(request.results) if request.results.is_file() else Results(runs={})
        _check_engine(request, results)
    except OrderError as error:
        return _outcome(order, out, started, "infra", str(error)) | {"fault": "order"}
    except (InfraError, TestboxError) as error:
        return _outcome(order, out, started, "infra", str(error))
    except OSError as error:
        return _outcome(
            order,
            out,
            started,
            "infra",
            f"The worker's disk failed or is full ({error}); see to {site.cache} and {out}.",
        )
    outcome = _outcome(order, out, started, made.verdict.status.value, made.verdict.reason)
    outcome["facts"] = facts = _facts(request, made, results, stolen)
    outcome["runs"] = [
        _run(job, number, results, facts) for job in request.unit_jobs for number in job.numbers
    ]
    return outcome


def _boot(request: Request) -> Boot:
    (request.out / "job.sh").write_bytes(_job_script(request))
    if isinstance(request.box.driver, ClusterDriver):
        return cluster.boot(request)
    if isinstance(request.box.driver, CommandDriver):
        return command.boot(request)
    return (
        virtual.boot(request) if isinstance(request.box.driver, QemuDriver) else ssh.boot(request)
    )


def _check_engine(request: Request, results: Results) -> None:
    """Raise InfraError if the engine says that it can't run anything on this box: no kernel is to blame for what is not installed."""
    if said := results.facts.get(engine.PROBLEM, "").strip():
        plain = printable(said[: REASON_LENGTH // 2])
        raise InfraError(
            f"The engine {request.box.engine} of testbox {request.box.name} can't run: {plain}."
        )


def _job_script(request: Request) -> bytes:
    """What runs on the box, to be kept with the results: the generated script, and behind it, as comments, the `run` of each program."""
    if isinstance(request.box.driver, ClusterDriver):
        return cluster.job_script(request)
    script, *runs = request.job_entries(alone=not isinstance(request.box.driver, CommandDriver))
    return script.content + b"".join(
        b"\n# " + b"\n# ".join([run.path.encode(), *run.content.splitlines()]) + b"\n"
        for run in runs
    )


def _request(order: Mapping[str, Any], out: Path, site: Site, tell_phase: TellPhase) -> Request:
    out.mkdir(parents=True, exist_ok=True)
    image = _image(order["kernel"], out, site)
    for name in FILES:  # a second attempt into the same directory must not show files of the first
        (out / name).unlink(missing_ok=True)
    box = _testbox(order["testbox"], site)
    if not accepted(trust_of(order["kernel"].get("trust")), box.accepts):
        raise OrderError(
            f"This kernel is not trusted, and testbox {box.name} takes trusted ones only (`accepts` in its file)."
        )
    unit_jobs = [UnitJob.from_json(job) for job in order["unit_jobs"]]
    deadline = order.get("deadline_seconds")
    return Request(
        box=box,
        image=image,
        k=order["k"],
        purpose=order.get("purpose", SEARCH),
        unit_jobs=unit_jobs,
        limits=limits(box, unit_jobs, deadline),
        patience=float(deadline or lease.PATIENCE_SECONDS),
        out=out,
        site=site,
        order=order,
        tell=_tell,
        tell_phase=tell_phase,
    )


def _testbox(name: str, site: Site) -> Testbox:
    folder = site.workers / "testboxes"
    path = folder / f"{name}.yaml"
    if path.parent != folder or not path.is_file():
        known = ", ".join(sorted(entry.stem for entry in folder.glob("*.yaml"))) or "none"
        raise InfraError(
            f"The testbox {name} is not described on this worker: {folder} has {known}."
        )
    return load_file(path)


def _image(kernel: Mapping[str, Any], out: Path, site: Site) -> Path:
    """The image by its path, or by its sha256 beside the results or in the cache; never another than the order says."""
    wanted = kernel.get("image_sha256")
    if "image" in kernel:
        path = Path(kernel["image"]).expanduser().absolute()
        if not path.is_file():
            raise InfraError(
                f"The kernel image {path} is not there; build it first, or give another path."
            )
        if wanted and _sha256(path) != wanted:
            raise InfraError(
                f"The kernel image {path} has another sha256 than the order says; build it again."
            )
        return path
    for path in (out / "bzImage", site.cache / "images" / str(wanted)):
        if path.is_file() and _sha256(path) == wanted:
            return path
    raise InfraError(
        f"The kernel image {wanted} is neither in {out} nor in {site.cache / 'images'}; fetch it, or build it again."
    )


def _facts(request: Request, made: Boot, results: Results, stolen: int | None) -> dict[str, Fact]:
    """The guest's facts first, cut to size because a guest may send anything; then ours, which win. What is not known is not there."""
    ours = {
        **host.facts(stolen),
        "testbox_label": request.box.label,
        "engine": request.box.engine,
        **made.facts,
        "image_sha256": _sha256(request.image),
    }
    return {
        name: told for name, told in {**facts_of(results.facts), **ours}.items() if told is not None
    }


def _run(job: UnitJob, number: int, results: Results, facts: Mapping[str, Fact]) -> dict[str, Any]:
    """What the runner says of one run: whether it came and how its program ended. Only the master judges its numbers."""
    said: dict[str, Any] = {"unit_job": job.name, "number": number}
    files = results.runs.get((job.name, number))
    if files is None:
        return said | {"status": "missing", "reason": "nothing came back from this run"}
    status = files.get("rc", "").strip()
    if status != "0":
        last = next(
            (line for line in reversed(files.get("stderr", "").splitlines()) if line.strip()), ""
        )
        plain = printable(last[:FACT_LENGTH])
        return said | {
            "status": "failed",
            "reason": f"{job.program} ended with status {status[:10] or 'unknown'}: {plain}".rstrip(
                ": "
            ),
            "seconds": _seconds(files),
        }
    if not files.get("stdout", "").strip():
        return said | {
            "status": "failed",
            "reason": f"{job.program} printed nothing",
            "seconds": _seconds(files),
        }
    if why := not_as_demanded(job.demand, facts, files):
        return said | {
            "status": "invalid",
            "reason": why[:REASON_LENGTH],
            "seconds": _seconds(files),
        }
    return said | {"status": "ok" if number >= job.warmup else "warmup", "seconds": _seconds(files)}


def _seconds(files: Mapping[str, str]) -> float | None:
    text = files.get("seconds", "").strip()
    return (
        float(text)
        if len(text) < 20 and text.replace(".", "", 1).isdecimal() and text.isascii()
        else None
    )


def _outcome(
    order: Mapping[str, Any], out: Path, started: float, status: str, reason: str | None
) -> dict[str, Any]:
    files = _present(out, FILES)
    return {
        "version": 1,
        "kind": "boot",
        "order": order["order"],
        "attempt": order["attempt"],
        "status": status,
        "reason": reason[:REASON_LENGTH] if reason is not None else None,
        "seconds": round(time.monotonic() - started, 3),
        "origin": order.get("origin", "measured"),
        "worker": socket.gethostname(),
        "files": {
            path.name: {"sha256": _sha256(path), "size": path.stat().st_size} for path in files
        },
    }


def _present(out: Path, names: Sequence[str]) -> list[Path]:
    return [path for name in names if (path := out / name).is_file()]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _tell(line: str) -> None:
    sys.stderr.write(line + "\n")
