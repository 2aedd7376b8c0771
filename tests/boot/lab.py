"""A lab for tests: the shipped virtual testboxes with the shipped programs,
and programs that provoke a kernel.
"""

from __future__ import annotations

from pathlib import Path

from swingbot_worker.site import Site, from_environment
from tests.contract.labs import PROGRAMS, ROOT, Lab, programs_in

SHIPPED = ("hackbench", "netperf", "page-fault")
PROVOKING = {
    "resets": "printf '\\006' | dd of=/dev/port bs=1 seek=3321 count=1; sleep 9\n",
    "drops": "echo 4 >/proc/sys/vm/drop_caches\n",
    "spins": "while :; do :; done\n",
    "floods": "yes 'the console is mine' >/dev/console\n",
    # The kernel prints this itself when it finds a page in a wrong state;
    # a program can only say it.
    "complains": "echo '<1>BUG: Bad page state in process complains' >/dev/kmsg; echo done\n",
}


def virtual_lab(
    tmp_path: Path,
    image: Path,
    *,
    cmdline: str = "",
    boot_seconds: float = 4,
    testbox: str = "vm-icount",
) -> Lab:
    """The shipped testbox `testbox` (`examples/NAME` for an example) with `cmdline` added to the
    kernel's.

    Caches are the machine's own: what is in them has proved itself by its key.
    """
    workers, jobs = tmp_path / "workers", programs_in(tmp_path / "jobs", PROGRAMS | PROVOKING)
    (workers / "testboxes").mkdir(parents=True)
    for folder in ("rootfs", "kconfig"):
        (workers / folder).symlink_to(ROOT / "workers" / folder)
    for name in SHIPPED:
        (jobs / "programs" / name).symlink_to(ROOT / "jobs" / "programs" / name)
    shipped = (ROOT / "workers" / "testboxes" / f"{testbox}.yaml").read_text()
    lines = [line for line in shipped.splitlines() if not line.startswith("boot_seconds:")]
    lines += [f"boot_seconds: {boot_seconds}"]
    if cmdline:
        lines += [f'cmdline: "{cmdline}"']
    testbox = testbox.rpartition("/")[2]
    (workers / "testboxes" / f"{testbox}.yaml").write_text("\n".join(lines) + "\n")
    site = Site(
        cache=from_environment().cache, workers=workers, jobs=jobs, benchmarks=None, make_jobs=1
    )
    return Lab(site=site, testbox=testbox, image=image, out=tmp_path / "out")
