"""A bare-metal testbox that is only played: as a program it is its SSH client,
its power switch and its kernels, all in one folder of small files.

played_testbox.py ssh FOLDER ...SCRIPT     the testbox's answer to a script, or ssh's error without one
played_testbox.py power FOLDER on|off|cycle|status|lie
played_testbox.py kernel FOLDER test|idle  a kernel begins, prints and ends as the file `behaves` says

A kernel that `works` also runs the programs of the job that came with its initramfs,
as this host's user; the generated script it only reads.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

IDLE, STRANGE = "6.1.0-56-amd64", "6.12.0"
FENCED = 'cannot be written"; exit 1; }\n'  # the end of the check in `ssh.enter.fenced`
BANNER = (
    "[    0.000000] Linux version {release} (who@where) #1\r\n[    0.000000] Command"
    " line: {cmdline}\r\n"
)


class World:
    """The folder: `power`, `runs` (idle, strange, test, nothing), `boot_id`, `behaves`, `cmdline`,
    `console`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __getitem__(self, name: str) -> str:
        path = self.folder / name
        return path.read_text() if path.exists() else ""

    def __setitem__(self, name: str, value: str) -> None:
        part = self.folder / f".{name}.{uuid.uuid4().hex}"
        part.write_text(value)
        part.rename(self.folder / name)

    def prints(self, text: str) -> None:
        with (self.folder / "console").open("a", newline="") as file:
            file.write(text)

    def begins(self, kernel: str) -> None:
        """Start a kernel that outlives us."""
        self["runs"] = "nothing"
        self["generation"] = uuid.uuid4().hex
        argv = [sys.executable, __file__, "kernel", str(self.folder), kernel]
        subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def new(folder: Path, behaves: str = "up") -> World:
    """A testbox in its idle system, whose next kernel under test `behaves` so."""
    folder.mkdir(parents=True)
    world = World(folder)
    world["power"], world["runs"], world["boot_id"], world["behaves"] = (
        "on",
        "idle",
        str(uuid.uuid4()),
        behaves,
    )
    world.prints("")
    return world


def ssh(world: World, script: str) -> int:
    if world["power"] != "on" or world["runs"] not in ("idle", "strange"):
        print("ssh: connect to host played port 22: Connection refused")
        return 255
    check, fenced, script = script.rpartition(FENCED)
    if fenced:
        check = check.replace("/var/lib/swingbot", f"{world.folder}/var")
        if status := subprocess.run(["sh", "-c", check + fenced], check=False).returncode:
            return status
    if "say boot_id" in script:
        said = {
            "boot_id": world["boot_id"],
            "release": IDLE if world["runs"] == "idle" else STRANGE,
            "machine": "x86_64",
            "uid": "0",
        }
        said |= {
            "clock": f"{time.time():.0f}",
            "kexec": "/sbin/kexec",
            "lockdown": "none",
            "space_kb": "9000000",
            "available_kb": "9000000",
            "space_kind": "tmpfs",
            "nr_cpu": "1",
            "memory_kb": "65536",
        }
        said |= {name: world[name] for name in said if name != "boot_id" and world[name]}
        print("\n".join(f"{name}={value}" for name, value in said.items()))
    elif "gzip -dc" in script:
        content = gzip.decompress(sys.stdin.buffer.read())
        (world.folder / Path(re.findall(r"gzip -dc >(\S+)", script)[0]).name).write_bytes(content)
        print(hashlib.sha256(content).hexdigest(), "-")
    elif "--command-line=" in script:
        world["cmdline"] = re.findall(r"swingbot=\S+[^']*", script)[0]
    elif "kexec -e" in script and world["behaves"] != "stays":
        world.begins("test")
    elif "systemctl reboot" in script and world["behaves"] != "stays":
        world.begins("idle")
    elif "marker" in script:
        said = re.findall(r"swingbot: marker [^']+", script)[0]
        world.prints(f"[   99.0] {said}\r\n")
    elif "/dev/console" in script:
        words = ["sh", "-c", script.replace(">/dev/console) >/dev/null 2>&1 &", ")")]
        shown = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        world.prints(shown.replace("\n", "\r\n"))
    elif script.startswith("cat /proc/"):
        return subprocess.run(["sh", "-c", script], check=False).returncode
    return 0


def power(world: World, what: str) -> int:
    if what in ("off", "cycle"):
        world["power"], world["runs"], world["generation"] = "off", "nothing", ""
    if what in ("on", "cycle"):
        world["power"] = "on"
        if "dead" not in world["behaves"]:
            world.begins("idle")
    print("on" if what == "lie" else world["power"])
    return 0


def kernel(world: World, what: str) -> int:
    mine = world["generation"]
    if what == "idle":
        world.prints(BANNER.format(release=IDLE, cmdline="root=LABEL=root ro"))
        time.sleep(0.3)
        if world["generation"] == mine:
            world["boot_id"], world["runs"] = str(uuid.uuid4()), "idle"
        return 0
    world["runs"] = "test"
    behaves, token = world["behaves"], re.findall(r"swingbot=(\S+)", world["cmdline"])[0]
    if behaves == "mute":
        world.begins("idle")
        return 0
    world.prints(BANNER.format(release="6.1.192", cmdline=world["cmdline"]))
    if behaves != "early":
        world.prints(f"[    6.0] swingbot: {token} up\r\n")
    time.sleep(0.5)
    if behaves in ("hangs", "early", "dead"):
        return 0
    if behaves == "unplugged":
        return power(world, "off")
    if behaves.startswith("panics"):
        world.prints("[    7.0] Kernel panic - not syncing: sysrq triggered crash\r\n")
        if "dead" in behaves:
            return 0
    elif behaves == "works":
        members, panicked = worked(world)
        if panicked:
            world.prints("[    9.0] Kernel panic - not syncing: Out of memory\r\n")
        else:
            world.prints(f"[    9.0] swingbot: {token} done 4711\r\n" + frames(results(members)))
    elif behaves != "resets":
        world.prints(f"[    8.0] swingbot: {token} done 4711\r\n" + frames(results()))
    world.begins("idle")
    return 0


def worked(world: World) -> tuple[dict[str, bytes], bool]:
    """The members of the results of a job that ran, and whether a run of the program `panics` ended
    it.
    """
    files = unpacked((world.folder / "initrd").read_bytes())
    members = {
        "facts/kernel_release": b"6.1.192\n",
        "facts/nr_cpu": b"1\n",
        "facts/memory_kb": b"65536\n",
    }
    for line in files["job/run.sh"].decode().splitlines():
        if not line.startswith("one_run "):
            continue
        _, name, number, _, _, program, *params = shlex.split(line)
        if program == "panics":
            return members, True
        for file, content in one_run(files[f"job/programs/{program}/run"], params).items():
            members[f"{name}/{number}/{file}"] = content
    return members, False


def one_run(program: bytes, params: Sequence[str]) -> dict[str, bytes]:
    """What is left of one run of a program in an environment of its own."""
    env = dict(param.split("=", 1) for param in params) | {"PATH": "/usr/bin:/bin"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run")
        path.write_bytes(program)
        done = subprocess.run(["sh", path], env=env, capture_output=True, check=False, timeout=30)
    rc = f"{done.returncode}\n".encode()
    return {"rc": rc, "stdout": done.stdout, "stderr": done.stderr, "seconds": b"0.10\n"}


def unpacked(archives: bytes) -> dict[str, bytes]:
    """Paths and contents of the plain files of `newc` archives behind each other.

    Of equal paths the last counts.
    """
    files: dict[str, bytes] = {}
    at = 0
    while (at := archives.find(b"070701", at)) >= 0:
        fields = [int(archives[at + 6 + 8 * k : at + 14 + 8 * k], 16) for k in range(13)]
        size, name_size = fields[6], fields[11]
        name = archives[at + 110 : at + 110 + name_size - 1].decode()
        start = at + 110 + name_size
        start += -start % 4
        files[name] = archives[start : start + size]
        at = start + size
    return files


def results(more: Mapping[str, bytes] = MappingProxyType({})) -> bytes:
    """What the runner sends: the facts, `more` members, and its last word."""
    first, last = {"facts/ready_seconds": b"1.5\n"}, {"facts/ended": b"2.5\n"}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, content in {**first, **more, **last}.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


def frames(content: bytes) -> str:
    packed = gzip.compress(content)
    text = base64.b64encode(packed).decode()
    lines = [text[start : start + 76] for start in range(0, len(text), 76)]
    head = f"SB+{len(lines)}:{hashlib.sha256(packed).hexdigest()}:\r\n"
    return (
        head + "".join(f"SB:{number:06d}:{line}:\r\n" for number, line in enumerate(lines)) + head
    )


def main(argv: list[str]) -> int:
    what, folder, *rest = argv
    act = {"ssh": ssh, "power": power, "kernel": kernel}[what]
    return act(World(Path(folder)), rest[-1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
