"""The bare metal of the tests: a QEMU machine with a disk, a network card, a serial console and a
power switch, which are just commands.

It knows nothing of swingbot, and its driver need not know that it is virtual.
This file is also a program, which needs only Python:

    machine.py power DIR on|off|cycle|status     starts and ends QEMU
    machine.py console DIR                       prints the console from now on, through resets
                                                 and power cycles
    machine.py netboot DIR KERNEL INITRD LINE    the next start from the network card takes these
                                                 once, as from a boot server
    machine.py network DIR on|off                plugs the network cable in and out
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.lab.image import Image

QEMU = "qemu-system-x86_64"
CARD = "52:54:00:12:34:56"  # the address of its network card; cards of other wires have others
# Emulated processors have nothing to be protected from, and boot sooner without it.
CMDLINE = "root=LABEL=root ro console=ttyS0 panic=10 mitigations=off nokaslr"
# A whole boot of Debian takes 40 s on a quiet machine with emulated processors;
# other tests may run beside it.
BOOT_SECONDS = 400.0


class MachineError(Exception):
    """The machine did not execute a request; the message says which."""


# --- what a power switch, a console and a boot server do; Python's own library is enough


def qemu_argv(
    folder: Path,
    about: dict[str, Any],
    kernel: Path,
    initrd: Path,
    cmdline: str,
    state: Path | None,
) -> list[str]:
    """One run of QEMU from start to reset, power off or the pulled plug."""
    forward = f"hostfwd=tcp:127.0.0.1:{about['port']}-:22"
    return [
        *(
            QEMU,
            "-machine",
            "q35",
            "-accel",
            f"tcg,thread={about['threads']}",
            "-cpu",
            "max,-erms,-fsrm",
        ),
        *("-smp", str(about["smp"]), "-m", f"{about['memory_mb']}M"),
        *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-monitor", "none"),
        *(
            "-qmp",
            f"unix:{folder}/events.sock,server=on,wait=off",
            "-qmp",
            f"unix:{folder}/control.sock,server=on,wait=off",
        ),
        *(
            "-chardev",
            f"file,id=console,path={folder}/console.log,append=on",
            "-serial",
            "chardev:console",
        ),
        *("-drive", f"file={folder}/disk.raw,format=raw,if=virtio,cache=unsafe"),
        *(
            "-netdev",
            f"user,id=net,restrict=on,{forward}",
            "-device",
            f"virtio-net-pci,netdev=net,id=card,mac={CARD}",
        ),
        *("-device", "virtio-rng-pci"),
        *about["extra"],
        *("-kernel", str(kernel), "-initrd", str(initrd), "-append", cmdline),
        *(("-incoming", f"exec:cat '{state}'") if state else ()),
    ]


def supervise(folder: Path) -> None:
    """Be the machine: power is on while this runs.

    After each reset the firmware searches for a boot device again.
    """
    about = json.loads((folder / "machine.json").read_text())
    while True:
        kernel, initrd, cmdline, state = _to_start(folder, about)
        with (folder / "qemu.log").open("ab") as log:
            (folder / "events.sock").unlink(missing_ok=True)
            qemu = subprocess.Popen(
                qemu_argv(folder, about, kernel, initrd, cmdline, state),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
            signal.signal(signal.SIGTERM, lambda number, frame, child=qemu: _pull_the_plug(child))  # type: ignore[misc]
            reason = _how_it_ends(folder, qemu)
        if reason != "guest-reset":
            (folder / "pid").unlink(missing_ok=True)
            return


def _pull_the_plug(qemu: subprocess.Popen[bytes]) -> None:
    qemu.kill()
    qemu.wait()
    os._exit(0)


def _to_start(folder: Path, about: dict[str, Any]) -> tuple[Path, Path, str, Path | None]:
    once = folder / "netboot" / "line"
    if once.exists():
        cmdline = once.read_text()
        once.unlink()
        return folder / "netboot" / "kernel", folder / "netboot" / "initrd", cmdline, None
    state, warm = None, folder / "warm"
    if warm.exists():
        state = Path(warm.read_text())
        warm.unlink()
    return (
        Path(about["kernel"]),
        Path(about["initrd"]),
        f"{CMDLINE} {about['cmdline']}".strip(),
        state,
    )


def _how_it_ends(folder: Path, qemu: subprocess.Popen[bytes]) -> str:
    """Follow QEMU's own word to the end.

    `guest-reset` is what makes it start again, all else leaves the power off.
    """
    reason = "gone"
    deadline = time.monotonic() + 30
    while qemu.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), _qmp(folder / "events.sock", timeout=None) as qmp:
            for line in qmp:
                event = json.loads(line)
                if event.get("event") == "SHUTDOWN":
                    reason = event["data"]["reason"]
            break
        time.sleep(0.05)
    qemu.wait()
    return reason


@contextlib.contextmanager
def _qmp(path: Path, timeout: float | None = 30.0) -> Iterator[Any]:
    """A line-wise file to one of QEMU's sockets, greeted. Each serves one client at a time."""
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(timeout)
        link.connect(str(path))
        with link.makefile("rw") as file:
            file.readline()
            file.write('{"execute": "qmp_capabilities"}\n')
            file.flush()
            file.readline()
            yield file


def _running(folder: Path) -> int | None:
    """Process id of the machine, None if the power is off."""
    try:
        pid = int((folder / "pid").read_text())
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    return pid if str(folder).encode() in words else None


def power(folder: Path, what: str) -> str:
    """Do `what` and say the state afterwards, `on` or `off`."""
    with (folder / "power.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if what in ("off", "cycle") and (pid := _running(folder)) is not None:
            os.kill(pid, signal.SIGTERM)
            _until(lambda: _running(folder) is None, 20, "QEMU does not end")
            (folder / "pid").unlink(missing_ok=True)
        if what in ("on", "cycle") and _running(folder) is None:
            with (folder / "qemu.log").open("ab") as log:
                argv = [sys.executable, str(Path(__file__).resolve()), "supervise", str(folder)]
                child = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    close_fds=True,
                )
            (folder / "pid").write_text(str(child.pid))
            _until(
                lambda: (folder / "events.sock").exists() or child.poll() is not None,
                20,
                "QEMU does not start",
            )
        return "off" if _running(folder) is None else "on"


def _until(true: Any, seconds: float, why: str) -> None:
    give_up = time.monotonic() + seconds
    while not true():
        if time.monotonic() > give_up:
            raise MachineError(f"{why} within {seconds:.0f} s")
        time.sleep(0.02)


def follow_console(folder: Path) -> None:
    """Print what is added to the console's file, for ever."""
    path = folder / "console.log"
    path.touch()
    with path.open("rb") as file:
        file.seek(0, 2)
        while True:
            if data := file.read(65536):
                sys.stdout.buffer.write(data)
                sys.stdout.buffer.flush()
            else:
                time.sleep(0.05)


def netboot(folder: Path, kernel: str, initrd: str, cmdline: str) -> None:
    target = folder / "netboot"
    target.mkdir(exist_ok=True)
    shutil.copyfile(kernel, target / "kernel")
    shutil.copyfile(initrd, target / "initrd")
    (target / "line.part").write_text(cmdline)
    (target / "line.part").rename(target / "line")


def main(argv: Sequence[str]) -> int:
    """The commands above; exit status 0 if it was done."""
    what, folder, *rest = argv
    place = Path(folder).absolute()
    if what == "supervise":
        supervise(place)
    elif what == "console":
        with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
            follow_console(place)
    elif what == "power":
        print(power(place, rest[0]))
    elif what == "netboot":
        netboot(place, *rest)
    elif what == "network":
        tell_qemu(place, "set_link", name="net", up=rest[0] == "on")
    else:
        return 2
    return 0


def tell_qemu(folder: Path, command: str, **arguments: Any) -> Any:
    """What QEMU returns to one command. Raises MachineError if it refuses."""
    with _qmp(folder / "control.sock") as file:
        file.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        file.flush()
        for line in file:
            reply = json.loads(line)
            if "error" in reply:
                raise MachineError(f"QEMU refuses {command}: {reply['error'].get('desc')}")
            if "return" in reply:
                return reply["return"]
    raise MachineError("QEMU ended")


# --- for the tests


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One machine with a disk of its own in `folder`; its SSH is 127.0.0.1:`port` of this host."""

    folder: Path
    port: int
    key: Path

    @classmethod
    def create(
        cls,
        folder: Path,
        *,
        packages: Sequence[str] = (),
        warm: bool = True,
        cmdline: str = "",
        smp: int = 2,
        memory_mb: int = 2048,
        threads: str = "single",
        extra: Sequence[str] = (),
    ) -> Machine:
        """A new machine, powered off, from the image with these Debian `packages`.

        `extra`: more arguments for QEMU.

        `threads`: with one for all processors ("single") they take turns of many milliseconds,
        so that what is measured differs fiftyfold; with one each ("multi") QEMU before 8.1 now and
        then runs code that the kernel has patched since, and the kernel panics
        (`trapped_on_stale_code`). `warm`: its first start goes on from the memory of one that had
        just come up; all later starts are whole boots.
        """
        from tests.lab import warm as warmed
        from tests.lab.image import image

        about = {
            "port": free_port(),
            "smp": smp,
            "memory_mb": memory_mb,
            "threads": threads,
            "cmdline": cmdline,
            "extra": list(extra),
        }
        made = image(packages)
        if warm and (smp, memory_mb, cmdline, list(extra)) == (2, 2048, "", []):
            warmed.warm_up(made)
        else:
            warm = False
        return cls.of_disk(
            folder, made, about, made.warm if warm else made.disk, made.state if warm else None
        )

    @classmethod
    def of_disk(
        cls, folder: Path, made: Image, about: dict[str, Any], disk: Path, state: Path | None
    ) -> Machine:
        folder = folder.absolute()
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "--sparse=always", str(disk), str(folder / "disk.raw")], check=True)
        if state is not None:
            (folder / "warm").write_text(str(state))
        files = {"kernel": str(made.kernel), "initrd": str(made.initrd), "key": str(made.key)}
        (folder / "machine.json").write_text(json.dumps(about | files))
        (folder / "known_hosts").write_text(f"[127.0.0.1]:{about['port']} {made.host_key}\n")
        (folder / "console.log").touch()
        return cls(folder=folder, port=about["port"], key=made.key)

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    @property
    def console_log(self) -> Path:
        """All that it has ever printed."""
        return self.folder / "console.log"

    def command(self, what: str, *words: str) -> list[str]:
        """One of the commands of this file, as an argument list that can stand in a testbox's
        file."""
        return [sys.executable, str(Path(__file__).resolve()), what, str(self.folder), *words]

    def power_command(self, what: str) -> list[str]:
        """`what` is on, off, cycle or status."""
        return self.command("power", what)

    @property
    def console_command(self) -> list[str]:
        return self.command("console")

    def start(self, seconds: float = BOOT_SECONDS) -> Machine:
        """Power on and wait until its SSH answers."""
        began_warm = (self.folder / "warm").exists()
        power(self.folder, "on")
        self.wait_for_ssh(seconds)
        if began_warm:  # it slept since its memory was kept
            self.ssh(f"date -s @{time.time():.0f}")
        return self

    def stop(self) -> None:
        power(self.folder, "off")

    def ssh_argv(self, *words: str) -> list[str]:
        options = [
            "BatchMode=yes",
            f"UserKnownHostsFile={self.known_hosts}",
            "StrictHostKeyChecking=yes",
            "ConnectTimeout=10",
            "LogLevel=ERROR",
            "IdentitiesOnly=yes",
        ]
        return [
            "ssh",
            "-F",
            "none",
            *(part for option in options for part in ("-o", option)),
            "-i",
            str(self.key),
            "-p",
            str(self.port),
            "root@127.0.0.1",
            *words,
        ]

    def ssh(self, command: str, timeout: float = 120.0) -> str:
        """What a shell command on the machine prints. Raises MachineError if it fails."""
        try:
            done = subprocess.run(
                self.ssh_argv(command),
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            raise MachineError(f"{command!r} took more than {timeout:.0f} s") from None
        if done.returncode != 0:
            raise MachineError(
                f"{command!r} ended with status {done.returncode}: {done.stderr.strip()[-400:]}"
            )
        return done.stdout

    def wait_for_ssh(self, seconds: float = BOOT_SECONDS) -> float:
        """Seconds until SSH answered.

        Raises MachineError with the end of the console if it does not.
        """
        began = time.monotonic()
        while True:
            try:
                self.ssh("true", timeout=30)
                return time.monotonic() - began
            except MachineError as error:
                if time.monotonic() - began > seconds:
                    raise MachineError(
                        f"no SSH within {seconds:.0f} s ({error});"
                        f" its console ends: {self.console_tail()}"
                    ) from None
                time.sleep(0.5)

    def console_tail(self) -> str:
        return self.console_log.read_bytes()[-1500:].decode(errors="replace")

    def boot_id(self) -> str:
        return self.ssh("cat /proc/sys/kernel/random/boot_id").strip()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (MachineError, OSError) as error:
        sys.exit(f"machine: {error}")
