"""Debian's kernel with the configuration of Debian's cloud image, booted to a measured run.

Parts that this boot does not use are left out (`WITHOUT`), which leaves 1400 of 2400 objects; all
else is as Debian set it. A build from nothing takes a quarter of an hour of two processors.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from swingbot_jobs.contract.kconfig import FRAGMENTS
from swingbot_worker.site import Site
from tests.boot.lab import virtual_lab
from tests.boot.test_boot_outcomes import SMALL, samples
from tests.lab.debs import kernel_config
from tests.lab.test_compilers import a_build

pytestmark = pytest.mark.timeout(10_800)

# What the drivers of QEMU's machine are to Debian: modules.
OURS = """\
# base: distro:config-6.1-cloud-amd64
# with: distro
CONFIG_VIRTIO_PCI=y
CONFIG_VIRTIO_CONSOLE=y
"""
# Network, disks, graphics, security modules, tracing, other hypervisors, firmware and power.
WITHOUT = """\
ATA BLK_CGROUP BPF_SYSCALL CRASH_DUMP CXL_BUS EFI EXT4_FS FB FS_ENCRYPTION FTRACE HIBERNATION
HOTPLUG_PCI HYPERV INTEGRITY IOMMU_SUPPORT IO_URING KEXEC KEXEC_FILE KPROBES LIVEPATCH MD
MODULE_SIG NET PCIEAER QUOTA RAS RTC_CLASS SCSI SECURITY SUSPEND TCG_TPM VGA_ARB WATCHDOG XEN
"""


def with_cloud_config(site: Site, tmp_path: Path) -> Site:
    """The site with a configuration `debian-cloud`."""
    changed = replace(site, workers=tmp_path / "workers")
    shutil.copytree(site.kconfig / FRAGMENTS, changed.kconfig / FRAGMENTS)
    (changed.kconfig / "config-6.1-cloud-amd64").write_text(kernel_config("6.1", "cloud-amd64"))
    (changed.kconfig / "debian-cloud.config").write_text(
        OURS + "".join(f"# CONFIG_{option} is not set\n" for option in WITHOUT.split())
    )
    return changed


def test_the_configuration_of_a_distribution_boots_and_measures(site: Site, tmp_path: Path) -> None:
    out = tmp_path / "kernel"
    cloud = with_cloud_config(site, tmp_path)
    built = a_build(cloud, "6.1", "gcc", 0, out, kconfig="debian-cloud")
    assert built["status"] == "built", built["reason"]
    config = set((out / "config").read_text().splitlines())
    assert not config & {f"CONFIG_{option}={value}" for option in WITHOUT.split() for value in "ym"}
    assert {"CONFIG_MAXSMP=y", "CONFIG_VIRTIO_PCI=y", "CONFIG_VIRTIO_BLK=m"} <= config
    lab = virtual_lab(tmp_path / "boot", out / "bzImage", boot_seconds=60)
    booted = lab.boot(SMALL)
    assert (booted["status"], booted["reason"]) == ("up", None)
    assert "page-fault-job/0 page-fault.per_process_ops" in samples(lab.out / "results.tar", SMALL)
