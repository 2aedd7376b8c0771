"""What can go wrong with a wire and takes longer to tell; the panics are in tests/boot."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from pathlib import Path

import pytest

from swingbot_jobs.testbox.definition import ClusterDriver
from swingbot_worker.testbox.cluster import wire
from tests.boot.wired import RR, ends_both, wired_lab


@pytest.mark.parametrize(
    ("program", "status", "says"),
    [
        (
            "unplugs",
            "infra",
            "The wire of cluster cs-vm has no carrier at client vm-tcg (eth0); check the cable",
        ),
        ("refuses", "hung", "server: cannot serve: no port is free"),
    ],
)
def test_what_goes_wrong_is_reported_with_the_testbox_that_it_went_wrong_on(
    tmp_path: Path, wired_kernel: Path, program: str, status: str, says: str
) -> None:
    ends_both(wired_lab(tmp_path, wired_kernel), program, status, says)


def test_a_wire_that_leads_elsewhere_is_distinguished_from_one_without_a_carrier(
    tmp_path: Path, wired_kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client's end is in another socket: it has a carrier, but gets no answer."""
    lab, elsewhere, real = (
        wired_lab(tmp_path, wired_kernel, boot_seconds=1),
        tmp_path / "elsewhere",
        wire.devices,
    )
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(elsewhere))
        listening.listen(1)
        threading.Thread(target=lambda: listening.accept()[0].recv(1), daemon=True).start()

        def crossed(driver: ClusterDriver, role: str, folder: Path) -> wire.Devices:
            made = real(driver, role, folder)
            return wire.Devices(
                argv=[
                    word.replace(str(folder / "wire"), str(elsewhere)) if role == "client" else word
                    for word in made.argv
                ],
                socket=made.socket,
            )

        monkeypatch.setattr(wire, "devices", crossed)
        outcome = lab.boot([RR])
    assert outcome["status"] == "hung"
    assert (
        "client vm-tcg: the server did not answer at 198.18.0.1,"
        " although this end of the wire has a carrier"
    ) in outcome["reason"]


STALE = (
    "[    4.4] int3: 0000 [#1] SMP\n[    4.4] Code:"
    " 41 8b 4f 20 66 <90> f7 c1\n[    4.5] Kernel panic - not syncing: Fatal exception\n"
)


def test_when_qemu_spoils_one_boot_both_are_made_again(
    tmp_path: Path, wired_kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first QEMU that is to be a client trips over its own translation.

    Its server cannot know.
    """
    real, shim = shutil.which("qemu-system-x86_64"), tmp_path / "bin" / "qemu-system-x86_64"
    shim.parent.mkdir()
    shim.write_text(
        f"""#!/bin/sh
        case "$*" in *server=off*) ;; *) exec {real} "$@" ;; esac
        [ -e {tmp_path}/spoilt ] && exec {real} "$@"
        : >{tmp_path}/spoilt
        for word; do case $word in file,id=console,path=*) console=${{word##*=}} ;; esac; done
        printf '%s' '{STALE}' >"$console"
        """
    )
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")
    outcome = wired_lab(tmp_path, wired_kernel).boot([RR])
    assert (outcome["status"], outcome["reason"]) == ("up", None)
    assert outcome["facts"]["boots_spoilt_by_qemu"] == 1
