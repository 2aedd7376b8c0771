"""Configurations of distributions: what is taken, what is refused, and the key of a build."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from swingbot_jobs.contract import distro_config
from swingbot_jobs.contract.kconfig import NoKconfig, load_kconfigs

TITLE = (
    "#\n# Automatically generated file; DO NOT EDIT.\n# Linux/x86 6.1.5 Kernel Configuration\n#\n"
)
TEXT = f'{TITLE}CONFIG_X86_64=y\nCONFIG_VIRTIO=m\nCONFIG_LOCALVERSION=""\n# CONFIG_A is not set\n'


@pytest.fixture
def boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "boot"
    place.mkdir()
    monkeypatch.setattr(distro_config, "BOOT", place)
    return place


@pytest.fixture
def kconfig(tmp_path: Path) -> Path:
    place = tmp_path / "kconfig"
    (place / "fragments").mkdir(parents=True)
    (place / "plain.config").write_text("CONFIG_P=y\n")
    return place


def named(kconfig: Path, path: object) -> None:
    (kconfig / "debian.config").write_text(f"# base: distro:{path}\nCONFIG_VIRTIO=y\n")


def test_the_digest_of_its_content_is_part_of_the_key_wherever_the_file_is(
    boot: Path, kconfig: Path
) -> None:
    (boot / "config-6.1.5-amd64").write_text(TEXT)
    named(kconfig, boot / "config-6.1.5-amd64")
    known = load_kconfigs(kconfig)
    before = known.text("debian")
    assert (known.distro("debian"), known.distro("plain")) == (TEXT, None)
    assert before.endswith("CONFIG_VIRTIO=y\n") and known["plain"] == "CONFIG_P=y\n"

    (boot / "config-6.1.5-amd64").write_text(TEXT + "CONFIG_B=y\n")
    assert load_kconfigs(kconfig).text("debian") != before

    (kconfig / "config-6.1.5").write_text(TEXT)
    named(kconfig, "config-6.1.5")
    known = load_kconfigs(kconfig)
    assert known.distro("debian") == TEXT
    assert known.text("debian").splitlines()[0] == before.splitlines()[0]


def test_the_file_in_boot_may_be_a_link_within_boot(boot: Path, kconfig: Path) -> None:
    (boot / "config-6.1.5-amd64").write_text(TEXT)
    (boot / "config").symlink_to("config-6.1.5-amd64")
    named(kconfig, boot / "config")
    assert load_kconfigs(kconfig).distro("debian") == TEXT


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.write(TEXT.encode())
        file.truncate(3 << 30)


def _out(path: Path) -> None:
    secret = path.parents[1] / "secret"
    secret.write_text(TEXT)
    path.symlink_to(secret)


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda path: None, "cannot be found (No such file or directory)"),
    "empty": (lambda path: path.write_text(""), "it is not a kernel configuration; unpack it"),
    "not a configuration": (lambda path: path.write_text("root:x:0:0\n"), "configuration (line 1)"),
    "compressed": (lambda path: path.write_bytes(b"\xfd7zXZ\0\0\4" * 99), "unpack it"),
    "of another architecture": (
        lambda path: path.write_text("# Linux/arm64 6.1.5 Kernel Configuration\nCONFIG_ARM64=y\n"),
        "it lacks CONFIG_X86_64=y (it is for arm64)",
    ),
    "of another architecture, without its title": (
        lambda path: path.write_text("CONFIG_X86_32=y\n"),
        "it lacks CONFIG_X86_64=y; name",
    ),
    "3 GiB": (_huge, "it has 3221225472 bytes, and a kernel configuration at most 4194304"),
    "a link out": (_out, "or a link leads out of there"),
    "a loop of links": (_loop, "cannot be found ("),
    "a directory": (lambda path: path.mkdir(), "it is not a file"),
    "a pipe": (os.mkfifo, "it is not a file"),
}


@pytest.mark.parametrize("place", ["boot", "kconfig"])
@pytest.mark.parametrize("what", WRONG)
def test_a_file_that_cannot_be_used_is_refused_by_who_names_it(
    boot: Path, kconfig: Path, what: str, place: str
) -> None:
    make, sentence = WRONG[what]
    path = {"boot": boot, "kconfig": kconfig}[place] / "config-x"
    make(path)
    named(kconfig, path if place == "boot" else path.name)
    known = load_kconfigs(kconfig)
    for ask in (known.text, known.over, known.distro):
        with pytest.raises(NoKconfig, match=r"^debian.config: '# base: distro:[^\n]+$") as caught:
            ask("debian")
        assert sentence in str(caught.value)
    assert known["plain"] == "CONFIG_P=y\n"


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/etc/passwd", "it is in neither"),
        ("../secret", "it is in neither"),
        ("", "the path may have letters"),
        ("a b", "the path may have letters"),
        ("x" * 201, "the path may have letters"),
    ],
)
def test_a_path_to_another_place_is_refused(
    boot: Path, kconfig: Path, path: str, sentence: str
) -> None:
    (kconfig.parent / "secret").write_text(TEXT)
    named(kconfig, path)
    with pytest.raises(NoKconfig) as caught:
        load_kconfigs(kconfig).text("debian")
    assert sentence in str(caught.value)
