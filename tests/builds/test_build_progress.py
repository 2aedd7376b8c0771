"""A build is judged by the objects that it finishes and the processor time that it takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from swingbot_worker import InfraError, limits, process
from swingbot_worker.kbuild.progress import BuildProgress, FullBuild

SPIN = "while :; do echo '  CC x.o'; done"
LONG = 30.0  # seconds in which a busy host gives a program what the tests need


def progress(objects: Path, ceiling: float = 1e6, past: FullBuild | None = None) -> BuildProgress:
    return BuildProgress(objects=objects, ceiling=ceiling, past=past, full=True)


def run(watch: BuildProgress, script: str) -> process.CompletedCommand:
    watch.command()
    return process.run(["sh", "-c", script], timeout=LONG, watch=watch, watch_seconds=0.05)


def test_printing_is_no_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BUILD_SPIN_CPU_SECONDS", 0.2)
    with pytest.raises(InfraError, match="spun, .* without finishing an object"):
        run(progress(tmp_path), SPIN)


def test_one_object_that_is_made_again_and_again_is_no_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BUILD_SPIN_CPU_SECONDS", 0.3)
    with pytest.raises(InfraError, match="spun, .* and finished 1 objects"):
        run(progress(tmp_path), f"while :; do : >{tmp_path}/x.o; done")


def test_a_long_link_of_a_configuration_that_took_longer_before_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BUILD_SPIN_CPU_SECONDS", 0.01)
    link = "i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done"
    past = FullBuild(objects=9, processor_seconds=60.0)
    assert run(progress(tmp_path, past=past), link).rc == 0


def test_objects_without_end_meet_the_ceiling(tmp_path: Path) -> None:
    with pytest.raises(InfraError, match="needed more than the 0 s of processor time"):
        run(
            progress(tmp_path, ceiling=0.4),
            f"n=0; while :; do n=$((n + 1)); : >{tmp_path}/$n.o; done",
        )


def test_a_build_that_sleeps_is_stopped_and_one_that_waits_for_its_host_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BUILD_IDLE_SECONDS", 0.5)
    with pytest.raises(InfraError, match="slept"):
        run(progress(tmp_path), "sleep 60")
    monkeypatch.setattr(limits, "BUILD_IDLE_SECONDS", 20.0)
    assert run(progress(tmp_path), "sleep 1").rc == 0


def test_progress_says_how_much_of_the_host_the_build_gets(tmp_path: Path) -> None:
    told: list[str] = []
    watch = progress(tmp_path, past=FullBuild(objects=4, processor_seconds=60.0))
    watch.tell = told.append
    run(watch, f": >{tmp_path}/x.o; sleep 0.5")
    assert "1 objects built" in told[-1] and " processors; load " in told[-1]
    assert "about 4 in all" in told[-1]


def test_what_a_full_build_took_is_remembered(tmp_path: Path) -> None:
    file = tmp_path / "full.json"
    assert FullBuild.read(file) is None
    FullBuild(objects=7, processor_seconds=1.5).write(file)
    assert FullBuild.read(file) == FullBuild(objects=7, processor_seconds=1.5)
    file.write_text("[]")
    assert FullBuild.read(file) is None
