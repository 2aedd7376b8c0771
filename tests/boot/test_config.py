"""`swingbot-worker config` against a real SSH server and a real kernel, which is configured and not
built.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from swingbot_jobs.contract.kconfig import load_kconfigs
from swingbot_worker.site import Site
from swingbot_worker.testbox.adopt.config_commands import command
from swingbot_worker.testbox.check import command as check
from tests.contract.labs import ROOT
from tests.fakes import ssh_machine

# The driver of ixgbe is in the configuration, those of i40e and of a Mellanox card are not, and
# that of the BMC's screen needs DRM, which it switches off.
MODULES = {"ixgbe": "ixgbe", "i40e": "i40e", "mlx5_core": "mlx5_core", "ast": "ast", "acpi-ged": ""}


def drivers(folder: Path) -> Path:
    """/sys with a PCI device for each driver."""
    for number, (driver, module) in enumerate(MODULES.items()):
        home = folder / "bus/pci/drivers" / driver
        home.mkdir(parents=True)
        device = folder / f"bus/pci/devices/0000:0{number}:00.0"
        device.mkdir(parents=True)
        (device / "driver").symlink_to(f"../../drivers/{driver}")
        if module:
            (folder / "module" / module).mkdir(parents=True)
            (home / "module").symlink_to(f"../../../../module/{module}")
    return folder


@contextmanager
def rack(workers: Path, sys: Path, kconfig: str) -> Iterator[None]:
    """A machine behind SSH with /sys from the directory `sys`, as the testbox rack1."""
    with ssh_machine.ssh_machine(workers.parent / "machine", {"/sys": sys}) as machine:
        about = {
            "name": "rack1",
            "tbox_group": "g",
            "driver": "ssh",
            "model": "m",
            "nr_cpu": 1,
            "memory_mb": 64,
            "kconfig": kconfig,
            "ssh": {
                "host": "127.0.0.1",
                "port": machine.port,
                "key": str(machine.key),
                "known_hosts": str(machine.known_hosts),
                "enter": "kexec",
                "console": "none",
                "power": "none",
            },
        }
        (workers / "testboxes" / "rack1.yaml").write_text(json.dumps(about))
        yield


@pytest.fixture
def workers(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An operator's directory without testboxes, with the shipped configurations."""
    workers = tmp_path / "workers"
    (workers / "testboxes").mkdir(parents=True)
    (workers / "tuning").symlink_to(ROOT / "workers" / "tuning")
    shutil.copytree(ROOT / "workers" / "kconfig", workers / "kconfig")
    monkeypatch.setenv("SWINGBOT_PATHS_WORKERS", str(workers))
    monkeypatch.setenv("SWINGBOT_PATHS_CACHE", str(site.cache))
    return workers


def test_drivers_that_the_configuration_lacks_are_proposed_and_those_that_do_not_stick_are_named(
    kernel_repo: tuple[Path, str], tmp_path: Path, workers: Path
) -> None:
    repo, commit = kernel_repo
    with rack(workers, drivers(tmp_path / "sys"), "server-x86_64"):
        argv = ["rack1", "--kernel", f"{repo}@{commit}"]
        done = CliRunner().invoke(command, argv)
        wrong = CliRunner().invoke(command, ["rack1", "--kernel", f"{repo}@nowhere"])
        fits = CliRunner().invoke(check, argv)
        file = workers / "testboxes" / "rack1.yaml"
        about = json.loads(file.read_text())
        about["ssh"]["kconfig_needed"] = ["IXGBE", "I40E"]
        file.write_text(json.dumps(about))
        lacks = CliRunner().invoke(check, argv)
    assert done.exit_code == 1, done.output
    assert "# i40e\nCONFIG_I40E=y\n" in done.stdout
    assert "# mlx5_core\nCONFIG_MLX5_CORE=y\n" in done.stdout
    assert "IXGBE" not in done.output and "DRM_AST" not in done.stdout
    assert "CONFIG_DRM_AST=y (ast) did not stick" in done.output
    assert "no module of this kernel: acpi-ged" in done.output
    assert "proposed" not in load_kconfigs(workers / "kconfig").fragments
    assert "ok  the kernel has the options of kconfig_needed" in fits.output
    assert "NO  the kernel has the options of kconfig_needed" in lacks.output
    assert "it lacks I40E" in lacks.output and lacks.exit_code == 1
    assert wrong.exit_code == 2 and "There is no commit, tag or branch 'nowhere'" in wrong.output


def test_modules_of_a_distributions_configuration_are_proposed_as_built_in(
    kernel_repo: tuple[Path, str], tmp_path: Path, workers: Path
) -> None:
    repo, commit = kernel_repo
    options = ("64BIT", "X86_64", "MODULES", "PCI", "PCI_MSI", "NET", "INET", "NETDEVICES")
    set_ = [f"CONFIG_{one}=y\n" for one in (*options, "ETHERNET", "NET_VENDOR_INTEL", "IXGBE")]
    (workers / "kconfig" / "config-6.1-cloud").write_text("".join(set_) + "CONFIG_I40E=m\n")
    (workers / "kconfig" / "cloud.config").write_text(
        "# base: distro:config-6.1-cloud\n# with: distro\nCONFIG_PRINTK=y\n"
    )
    with rack(workers, drivers(tmp_path / "sys"), "cloud"):
        done = CliRunner().invoke(command, ["rack1", "--kernel", f"{repo}@{commit}"])
        (workers / "kconfig" / "config-6.1-cloud").unlink()
        (workers / "kconfig" / "config-6.1-cloud").symlink_to("/etc/passwd")
        wrong = CliRunner().invoke(command, ["rack1", "--kernel", f"{repo}@{commit}"])
    assert "# i40e\nCONFIG_I40E=y\n" in done.stdout, done.output
    assert "IXGBE" not in done.output
    assert wrong.exit_code == 2 and "a link leads out of there" in wrong.output
