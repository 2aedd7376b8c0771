"""`swingbot-worker check --kernel`: what a kernel lacks is said before a machine is touched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from swingbot_worker import InfraError
from swingbot_worker.site import Site
from swingbot_worker.testbox import select_driver
from swingbot_worker.testbox.check import command
from swingbot_worker.testbox.kernel_check import kernel_findings, refusals
from tests.contract.labs import ROOT
from tests.unit.test_ssh_parts import bzimage

FITS = b"CONFIG_NR_CPUS=64\nCONFIG_NUMA=y\nCONFIG_VIRTIO_NET=y\n"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A worker with one testbox of 16 CPUs on 2 nodes, whose card needs a driver."""
    workers = tmp_path / "workers"
    (workers / "testboxes").mkdir(parents=True)
    for name in ("kconfig", "tuning"):
        (workers / name).symlink_to(ROOT / "workers" / name)
    ssh = {
        "host": "127.0.0.1",
        "port": 9,
        "key": "/k",
        "known_hosts": "/h",
        "enter": "kexec",
        "console": "none",
        "power": "none",
        "kconfig_needed": ["VIRTIO_NET"],
    }
    about = {
        "name": "rack1",
        "tbox_group": "g",
        "driver": "ssh",
        "model": "m",
        "nr_cpu": 16,
        "nr_node": 2,
        "memory_mb": 64,
        "ssh": ssh,
    }
    (workers / "testboxes" / "rack1.yaml").write_text(json.dumps(about))
    return Site(
        cache=tmp_path / "cache",
        workers=workers,
        jobs=ROOT / "jobs",
        benchmarks=None,
        make_jobs=1,
    )


def lacking(site: Site, config: bytes | None) -> str:
    image = site.workers.parent / "bzImage"
    image.write_bytes(bzimage(config))
    found = kernel_findings(select_driver.testbox_of("rack1", site), str(image), site)
    return "\n".join(f"{one.found} -> {one.do}" for one in found if not one.ok)


def test_a_kernel_that_has_all_of_it_lacks_nothing(site: Site) -> None:
    assert lacking(site, FITS) == ""


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (FITS.replace(b"NET=y", b"NET=m"), "it lacks VIRTIO_NET -> add the fragment net-virtio"),
        (FITS.replace(b"=64", b"=8"), "at most 8 -> set CONFIG_SMP=y and CONFIG_NR_CPUS=16"),
        (FITS.replace(b"CONFIG_NR_CPUS=64\n", b""), "at most 1 -> set CONFIG_SMP=y"),
        (FITS.replace(b"NUMA=y", b"NUMA is not set"), "it lacks NUMA -> add "),
        (None, "neither in bzImage nor beside it -> put its .config beside it"),
    ],
)
def test_what_a_kernel_lacks_is_said_with_what_to_do(
    site: Site, config: bytes | None, said: str
) -> None:
    assert lacking(site, config).startswith(said)
    image, testbox = site.workers.parent / "bzImage", select_driver.testbox_of("rack1", site)
    # A kernel of unknown configuration may be booted, as a test order boots it.
    assert bool(refusals(testbox, image, site)) == (config is not None)


def test_a_kernel_of_another_architecture_and_a_file_that_is_none_are_refused(site: Site) -> None:
    image, testbox = site.workers.parent / "Image", select_driver.testbox_of("rack1", site)
    for content, said in ((bytes(56) + b"ARM\x64", "aarch64"), (b"#!/bin/sh\n", "not a kernel")):
        image.write_bytes(content)
        assert said in refusals(testbox, image, site)[0]
    for given in ("nowhere", "@v6.1", "nowhere@"):
        with pytest.raises(InfraError, match="there is no such file; give a kernel image, or REPO"):
            kernel_findings(testbox, given, site)
    with pytest.raises(InfraError, match="rack1.yaml names no kconfig"):
        kernel_findings(testbox, "/srv/linux.git@v6.1", site)


def test_the_command_ends_with_1_for_a_kernel_that_does_not_fit(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWINGBOT_PATHS_WORKERS", str(site.workers))
    image = site.workers.parent / "bzImage"
    image.write_bytes(bzimage(FITS.replace(b"=64", b"=8")))
    done = CliRunner().invoke(command, ["rack1", "--kernel", str(image)])
    assert done.exit_code == 1 and "NO  the kernel can use 16 CPUs" in done.output
    done = CliRunner().invoke(command, ["rack1", "--kernel", "nowhere"])
    assert done.exit_code == 2 and "--kernel nowhere: there is no such file" in done.output
