"""`swingbot-worker config` against a real SSH server and a real kernel, which is configured and not
built.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from swingbot_jobs.contract.kconfig import load_kconfigs
from swingbot_worker.site import Site
from swingbot_worker.testbox.adopt.config_commands import command
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


def test_drivers_that_the_configuration_lacks_are_proposed_and_those_that_do_not_stick_are_named(
    site: Site,
    kernel_repo: tuple[Path, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workers = tmp_path / "workers"
    (workers / "testboxes").mkdir(parents=True)
    for name in ("kconfig", "tuning"):
        (workers / name).symlink_to(ROOT / "workers" / name)
    monkeypatch.setenv("SWINGBOT_PATHS_WORKERS", str(workers))
    monkeypatch.setenv("SWINGBOT_PATHS_CACHE", str(site.cache))
    repo, commit = kernel_repo
    over = {"/sys": drivers(tmp_path / "sys")}
    with ssh_machine.ssh_machine(tmp_path / "machine", over) as machine:
        about = {
            "name": "rack1",
            "tbox_group": "g",
            "driver": "ssh",
            "model": "m",
            "nr_cpu": 1,
            "memory_mb": 64,
            "kconfig": "server-x86_64",
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
        argv = ["rack1", "--kernel", f"{repo}@{commit}"]
        done = CliRunner().invoke(command, argv)
        wrong = CliRunner().invoke(command, ["rack1", "--kernel", f"{repo}@nowhere"])
    assert done.exit_code == 1, done.output
    assert "# i40e\nCONFIG_I40E=y\n" in done.stdout
    assert "# mlx5_core\nCONFIG_MLX5_CORE=y\n" in done.stdout
    assert "IXGBE" not in done.output and "DRM_AST" not in done.stdout
    assert "CONFIG_DRM_AST=y (ast) did not stick" in done.output
    assert "no module of this kernel: acpi-ged" in done.output
    assert "proposed" not in load_kconfigs(ROOT / "workers" / "kconfig").fragments
    assert wrong.exit_code == 2 and "There is no commit, tag or branch 'nowhere'" in wrong.output
