"""ansible/site.yml against the servers and machines of the tests, with the inventory that users are
given as an example.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from swingbot_worker import lease
from swingbot_worker.site import from_environment

ROOT = Path(__file__).parents[2]
ANSIBLE = ROOT / "ansible"
BIN = Path(sys.executable).parent
PLAY_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Inventory:
    """A folder such as inventory.example/. `secrets` are never to be printed."""

    folder: Path
    secrets: tuple[str, ...] = ()

    def play(self, *words: str) -> dict[str, dict[str, int]]:
        """Run the playbook; what it says it did, by host and then ok, changed, failed ...

        Its output is stored next to the inventory.
        """
        password = self.folder / "vault-password"
        argv = ["ansible-playbook", "-i", str(self.folder / "hosts.yml"), "site.yml", *words]
        argv += ["--vault-password-file", str(password)] if password.exists() else []
        done = subprocess.run(
            argv,
            cwd=ANSIBLE,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=PLAY_SECONDS,
            stdin=subprocess.DEVNULL,
        )
        said = done.stdout + done.stderr
        with (self.folder / "plays.log").open("a") as log:
            log.write(f"$ {' '.join(argv)}\n{said}\n")
        assert done.returncode == 0, said[-5000:]
        assert not [one for one in self.secrets if one in said], "a secret is printed"
        return recap(done.stdout)

    def write(self, name: str, table: Mapping[str, Any]) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(dict(table), sort_keys=False))


def environment() -> dict[str, str]:
    return {**os.environ, "ANSIBLE_NOCOLOR": "1", "PATH": f"{BIN}:{os.environ['PATH']}"}


def recap(printed: str) -> dict[str, dict[str, int]]:
    """The last table that ansible-playbook prints."""
    lines = re.findall(r"^(\S+) +: (ok=.*)$", printed.rpartition("PLAY RECAP")[2], re.M)
    return {
        host: {name: int(number) for name, number in re.findall(r"(\w+)=(\d+)", counts)}
        for host, counts in lines
    }


def changed(played: Mapping[str, Mapping[str, int]]) -> int:
    return sum(counts["changed"] for counts in played.values())


def defaults(role: str) -> dict[str, Any]:
    variables: dict[str, Any] = yaml.safe_load(
        (ANSIBLE / "roles" / role / "defaults/main.yml").read_text()
    )
    return variables


def wheelhouse() -> Path:
    """Every wheel that the servers need, by the lock, as docs/ansible.md says to make it:
    they reach no package index.
    """
    needed = subprocess.run(
        [sys.executable, "docker/locked.py", "master", "worker"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    folder = from_environment().cache / "wheels" / hashlib.sha256(needed.encode()).hexdigest()[:16]
    with lease.cache_entry(folder, patience=1800.0):
        if not (folder / "requirements.txt").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            part = folder.with_suffix(".txt")
            part.write_text(needed)
            pip = [
                sys.executable,
                "-m",
                "pip",
                "-q",
                "--disable-pip-version-check",
                "download",
                "--require-hashes",
                "--only-binary",
                ":all:",
            ]
            subprocess.run([*pip, "-r", str(part), "-d", str(folder)], check=True)
            part.replace(folder / "requirements.txt")
    return folder


def checkout(folder: Path) -> Path:
    """A clone of this checkout, whose commits are installed."""
    subprocess.run(["git", "clone", "-q", "--shared", str(ROOT), str(folder)], check=True)
    return folder


def release_commit(source: Path) -> str:
    """Commit something new there; its short name, as that of a release."""
    git = ["git", "-C", str(source), "-c", "user.name=a", "-c", "user.email=a@localhost"]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "a new release"], check=True)
    return subprocess.run(
        [*git, "rev-parse", "--short=12", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()


def from_example(folder: Path, vault: Mapping[str, str], master: str) -> Inventory:
    """inventory.example/ as its own comments say to fill it in: a vault, a key for testboxes,
    and a certificate of `master`.
    """
    shutil.copytree(ANSIBLE / "inventory.example", folder)
    table: dict[str, str] = yaml.safe_load((folder / "vault.example.yml").read_text())
    assert table.keys() == vault.keys(), "the example of the vault names them all"
    (folder / "vault.example.yml").unlink()
    everywhere = folder / "group_vars/swingbot"
    everywhere.mkdir()
    (folder / "group_vars/swingbot.yml").rename(everywhere / "vars.yml")
    (everywhere / "vault.yml").write_text(json.dumps(vault))
    (folder / "vault-password").write_text("the password of the vault\n")
    key = folder / "files/id_swingbot"
    key.parent.mkdir()
    _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "swingbot", "-f", str(key))
    _run(str(BIN / "swingbot"), "worker", "certificate", "--name", master, "--out", str(key.parent))
    secret = [everywhere / "vault.yml", key, key.parent / "master.key"]
    _run(
        "ansible-vault",
        "encrypt",
        "--vault-password-file",
        str(folder / "vault-password"),
        *map(str, secret),
    )
    return Inventory(folder, tuple(vault.values()))


def _run(*argv: str) -> None:
    done = subprocess.run(
        argv, env=environment(), capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stdout + done.stderr


def without_ssh(executable: Path) -> dict[str, Any]:
    """How Ansible reaches a server of bare_host.py: by the command that stands in for ssh."""
    how = {"executable": str(executable), "transfer_method": "piped", "args": ""}
    return {f"ansible_ssh_{name}": word for name, word in how.items()} | {
        "ansible_user": "root",
        "ansible_become": False,
    }


def a_package(folder: Path, name: str, files: Mapping[str, str]) -> Path:
    """A Debian package with these files, for one that is not in Debian."""
    tree = folder / name
    control = (
        f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer:"
        " nobody <nobody@localhost>\nDescription: stand-in\n"
    )
    for path, text in {"DEBIAN/control": control, **files}.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)
    made = folder / f"{name}.deb"
    _run("dpkg-deb", "--build", "--root-owner-group", str(tree), str(made))
    return made


def words(*lists: Sequence[str]) -> list[str]:
    return sorted({word for one in lists for word in one})
