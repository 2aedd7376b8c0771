"""docs/install.md on a bare Debian 12: its packages, pipx with the wheel, `swingbot up`,
a comparison; no repository in sight.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from swingbot_worker.site import from_environment
from tests import wheel
from tests.kernels import base_image, demo_repository, kernel_repository
from tests.lab import made_root
from tests.lab.debs import SUITE, sources_list

ROOT = Path(__file__).parents[2]
INSTALL = (ROOT / "docs" / "install.md").read_text()
PORT = 18510
SECONDS = 3600.0
# The second terminal of docs/install.md; a kernel of the cache, and the same with one line more in
# its log.
STORY = f"""\
set -eu
{{pipx}}
PATH=$PATH:/root/.local/bin
cd /root
swingbot up --state /var/lib/swingbot --port {PORT} >/tmp/up.log 2>&1 &
up=$!
until grep -q 'swingbot is up' /tmp/up.log; do kill -0 $up || {{{{ cat /tmp/up.log; exit 1; }}}}; sleep 1; done
export SWINGBOT_PATHS_STATE=/var/lib/swingbot
swingbot tree add demo /srv/linux.git --branch base --base {{base}} --job vm-hackbench.yaml
swingbot compare {{base}} {{base}} --patch /dist/my.patch --trusted --tree demo --job vm-hackbench.yaml --boots 1 --yes --wait
swingbot token create Ada --role submitter 2>&1
kill -INT $up
wait $up
"""
PATCH = """\
From: A <a@localhost>
Subject: init: say one thing more

--- a/init/version.c
+++ b/init/version.c
@@ -1,3 +1,4 @@
+static const char wheel_test[] __attribute__((used)) = "built by the wheel";
 // SPDX-License-Identifier: GPL-2.0-only
 /*
  *  linux/init/version.c
"""


def _packages() -> list[str]:
    """What docs/install.md has apt-get install."""
    commands = re.findall(
        r"^apt-get install --no-install-recommends ((?:.*\\\n)*.*)$", INSTALL, re.M
    )
    assert len(commands) == 2
    return " ".join(commands).replace("\\\n", " ").split()


def _pipx(built: Path) -> str:
    """The line of docs/install.md, with the places of this test."""
    [line] = re.findall(r"^(pipx install .*)$", INSTALL, re.M)
    line = line.replace("--constraint constraints.txt", "--constraint /dist/constraints.txt")
    return re.sub(r"file:///\S+\.whl", f"file:///dist/{built.name}", line)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("the root is made and entered as root")
    place = tmp_path_factory.mktemp("bare")
    root, sources = place / "root", place / "sources.list"
    sources.write_text(sources_list())
    include = ",".join(["ca-certificates", *_packages()])
    argv = ["mmdebstrap", "--quiet", "--variant=minbase", "--mode=root", f"--include={include}"]
    subprocess.run(
        made_root.apart([*argv, SUITE, str(root), str(sources)]), check=True, timeout=SECONDS
    )
    yield root
    made_root.remove(root)


def _enter(root: Path, binds: dict[Path, str], script: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script in `root`, with this host's network, and nothing of its files but
    `binds`."""
    for inside in binds.values():
        (root / inside.lstrip("/")).mkdir(parents=True, exist_ok=True)
    for file in ("/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt", "/etc/pip.conf"):
        if Path(file).is_file():
            (root / file.lstrip("/")).write_bytes(Path(file).read_bytes())
    mounts = [
        f"mount --rbind /dev {root}/dev",
        f"mount -t proc proc {root}/proc",
        f"mount --rbind /sys {root}/sys",
        *(f"mount --bind {here} {root}{there}" for here, there in binds.items()),
    ]
    kept = [f"{name}={os.environ[name]}" for name in os.environ if name.startswith("PIP_")]
    path = f"PATH={wheel.PLAIN_PATH}"
    enter = ["env", "-i", "HOME=/root", "LANG=C.UTF-8", path, *kept, "chroot", str(root)]
    inner = f'{" && ".join(mounts)} && exec "$@"'
    argv = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"]
    return subprocess.run(
        [*argv, "sh", "-c", inner, "sh", *enter, "sh", "-c", script],
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


def test_a_bare_machine_installs_the_wheel_and_ends_a_comparison(
    bare: Path, tmp_path: Path
) -> None:
    site = from_environment()
    base_image(site)
    _, base = kernel_repository(site)
    built = wheel.build(tmp_path / "dist")
    (tmp_path / "dist" / "my.patch").write_text(PATCH)
    binds = {
        built.parent: "/dist",
        demo_repository(site): "/srv/linux.git",
        # the base kernel and ccache, as a machine has them that has worked for a while
        site.cache: "/root/.cache/swingbot",
    }
    story = STORY.format(pipx=_pipx(built), base=base)
    done = _enter(bare, binds, story)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert re.search(r"^c\d+  .*  done$", done.stdout, re.M), done.stdout
    assert f"http://127.0.0.1:{PORT}/login" in done.stdout
