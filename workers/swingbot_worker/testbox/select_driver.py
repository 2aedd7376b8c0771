"""Find the testbox of an order and its driver."""

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
from swingbot_worker.testbox.cluster.files import FILES as OF_CLUSTER
from swingbot_worker.testbox.driver import Driver

# The files of a boot that any driver may write.
FILES = (*driver.FILES, *OF_CLUSTER)


def testbox_of(name: str, site: Site) -> Testbox:
    """Return the testbox `name`.

    Raises InfraError if it is unknown, TestboxError for a bad file.
    """
    folder = site.workers / "testboxes"
    path = folder / f"{name}.yaml"
    if path.parent != folder or not path.is_file():
        known = ", ".join(sorted(entry.stem for entry in folder.glob("*.yaml"))) or "none"
        raise InfraError(f"This worker has no description of testbox {name}: {folder} has {known}.")
    return load_file(path)


def driver_of(testbox: Testbox) -> Driver:
    """Return the driver that boots `testbox`.

    Its module is imported here, because a process boots one testbox, and the drivers together take
    60 ms of processor time to import.
    """
    match testbox.driver:
        case QemuDriver() as how:
            from swingbot_worker.testbox.qemu.driver import Qemu

            return Qemu(testbox, how)
        case CommandDriver() as how:
            from swingbot_worker.testbox.command import OperatorCommand

            return OperatorCommand(testbox, how)
        case SshDriver() as how:
            from swingbot_worker.testbox.ssh.driver import Ssh

            return Ssh(testbox, how)
        case ClusterDriver() as how:
            from swingbot_worker.testbox.cluster.driver import Cluster

            return Cluster(
                testbox, how, {role: driver_of(node) for role, node in how.nodes.items()}
            )
