"""A testbox file and a kernel are proven by one boot: a machine with two NUMA nodes, and a kernel
without NUMA.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from swingbot_worker.testbox import select_driver
from swingbot_worker.testbox.adopt.proof_boot import prove
from tests.boot.lab import virtual_lab
from tests.boot.test_boot_outcomes import SERVER, edit


def test_a_kernel_without_numa_does_not_prove_a_file_with_two_nodes(
    tmp_path: Path, base_kernel: Path
) -> None:
    lab = virtual_lab(tmp_path, base_kernel, testbox="vm-tcg", boot_seconds=60)
    edit(lab.site.workers / "testboxes" / "vm-tcg.yaml", SERVER)
    testbox = select_driver.testbox_of("vm-tcg", lab.site)
    lines: list[str] = []
    idle: dict[str, Any] = {"nr_socket": 2, "clocksource": "sundial"}
    proof = prove(testbox, base_kernel, idle, lab.site, lines.append)
    assert proof.status == "up", proof.reason
    found = {finding.what: finding for finding in proof.findings}
    assert found["it measures"].found.startswith("page-fault.per_process_ops ")
    wrong = {what: finding.found for what, finding in found.items() if not finding.ok}
    assert wrong.pop("clocksource is that of the idle system").endswith("; there it is sundial")
    assert wrong == {"it has 2 NUMA nodes": "1"}
    assert found["it has 4 CPUs"].ok and found["nr_socket is that of the idle system"].ok
    assert lines[0] == f"booting {base_kernel} once on vm-tcg: about 70 s, at most 4 min"
    assert "Linux version" in Path(proof.files, "console.log").read_text()


def test_a_kernel_that_sees_all_proves_it_and_leaves_no_files(
    tmp_path: Path, base_kernel: Path
) -> None:
    lab = virtual_lab(tmp_path, base_kernel, boot_seconds=60)
    testbox = select_driver.testbox_of("vm-icount", lab.site)
    proof = prove(testbox, base_kernel, {}, lab.site, lambda line: None)
    assert proof.proven and proof.files == "", proof


def test_an_image_that_is_no_kernel_proves_nothing(tmp_path: Path, base_kernel: Path) -> None:
    lab = virtual_lab(tmp_path, base_kernel)
    image = tmp_path / "image"
    image.write_text("not a kernel")
    testbox = select_driver.testbox_of("vm-icount", lab.site)
    proof = prove(testbox, image, {}, lab.site, lambda line: None)
    assert not proof.proven and proof.reason and Path(proof.files).is_dir(), proof
