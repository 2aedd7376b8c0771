"""Which testbox an order means, and the driver that boots it."""

from __future__ import annotations

from swingbot_jobs.testbox.definition import (
    ClusterDriver,
    CommandDriver,
    QemuDriver,
    Testbox,
)
from swingbot_jobs.testbox.file import load_file
from swingbot_jobs.testbox.ssh import SshDriver
from swingbot_worker import InfraError
from swingbot_worker.site import Site
from swingbot_worker.testbox import driver
from swingbot_worker.testbox.cluster.driver import FILES as OF_CLUSTER
from swingbot_worker.testbox.cluster.driver import Cluster
from swingbot_worker.testbox.command import OperatorCommand
from swingbot_worker.testbox.driver import Driver
from swingbot_worker.testbox.qemu.driver import Qemu
from swingbot_worker.testbox.ssh.driver import Ssh

# What any driver may leave of a boot.
FILES = (*driver.FILES, *OF_CLUSTER)


def box_of(name: str, site: Site) -> Testbox:
    """The testbox `name` of this worker. Raises InfraError if there is none, TestboxError if its file is wrong."""
    folder = site.workers / "testboxes"
    path = folder / f"{name}.yaml"
    if path.parent != folder or not path.is_file():
        known = ", ".join(sorted(entry.stem for entry in folder.glob("*.yaml"))) or "none"
        raise InfraError(
            f"The testbox {name} is not described on this worker: {folder} has {known}."
        )
    return load_file(path)


def driver_of(box: Testbox) -> Driver:
    """The driver that boots `box`."""
    match box.driver:
        case QemuDriver() as how:
            return Qemu(box, how)
        case CommandDriver() as how:
            return OperatorCommand(box, how)
        case SshDriver() as how:
            return Ssh(box, how)
        case ClusterDriver() as how:
            return Cluster(box, how, {role: driver_of(node) for role, node in how.nodes.items()})
