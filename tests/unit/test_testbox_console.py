"""What a console, a growing log and a results stream make of a boot."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot_worker import limits, runner
from swingbot_worker.testbox import console, watch
from swingbot_worker.testbox.limits import BootLimits
from swingbot_worker.testbox.verdict import BootStatus, Verdict

NULL_POINTER = """\
[    2.101] Run /init as init process
[    3.512345] BUG: kernel NULL pointer dereference, address: 0000000000000008
[    3.512400] #PF: supervisor read access in kernel mode
[    3.512500] Oops: 0000 [#1] PREEMPT SMP NOPTI
"""
DIED = "[    3.600000] Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000009\n"
PATIENT = BootLimits(wall=100, quiet_boot=50, quiet_job=50)


@pytest.mark.parametrize(
    ("text", "status", "reason"),
    [
        (
            NULL_POINTER,
            BootStatus.OOPSED,
            "BUG: kernel NULL pointer dereference, address: 0000000000000008",
        ),
        (
            DIED,
            BootStatus.PANICKED,
            "Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000009",
        ),
        (
            NULL_POINTER + DIED,
            BootStatus.PANICKED,
            (
                "BUG: kernel NULL pointer dereference, address: 0000000000000008; Kernel "
                "panic - not syncing: Attempted to kill init! exitcode=0x00000009"
            ),
        ),
        (
            "[ 1.0] kernel BUG at mm/page_alloc.c:1234!\n",
            BootStatus.OOPSED,
            "kernel BUG at mm/page_alloc.c:1234!",
        ),
        (
            "[ 1.0] invalid opcode: 0000 [#1] SMP\n",
            BootStatus.OOPSED,
            "invalid opcode: 0000 [#1] SMP",
        ),
        (
            "[ 1.0] general protection fault, probably for non-canonical address\r\n",
            BootStatus.OOPSED,
            "general protection fault, probably for non-canonical address",
        ),
        (
            "[ 1.0] BUG: Bad page state in process hackbench  pfn:12345\n",
            BootStatus.OOPSED,
            "BUG: Bad page state in process hackbench  pfn:12345",
        ),
        (
            "[ 1.0][ T1] BUG: sleeping function called from invalid context at mm/x.c:1\n",
            BootStatus.OOPSED,
            "BUG: sleeping function called from invalid context at mm/x.c:1",
        ),
    ],
)
def test_the_first_telling_line_is_the_reason(text: str, status: BootStatus, reason: str) -> None:
    assert console.judge("[    0.0] Linux version 6.1\n" + text + "[    9.0] more\n") == Verdict(
        status=status, reason=reason
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        (
            "[    0.0] Linux version 6.1\n[ 1.0] WARNING: CPU: 0 PID: 1 at mm/page_alloc.c:1 "
            "__alloc_pages\n"
        ),
        "[   60.0] watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [hackbench:99]\n",
        "[   60.0] rcu: INFO: rcu_sched detected stalls on CPUs/tasks:\n",
        "[    0.0] Command line: panic=-1 oops=panic\n",
    ],
)
def test_warnings_and_a_starved_guest_do_not_condemn_a_kernel(text: str) -> None:
    assert console.judge(text) is None


def trap(code: str, oops: str = "int3: 0000 [#1] SMP") -> str:
    return (
        f"[    4.4] {oops}\n[    4.4] RIP: 0010:__schedule+0x1c3/0x370\n[    4.4] Code: "
        f"{code}\n[    4.5] RSP: 0018:ffffaf16 EFLAGS: 00000046\n{DIED}"
    )


@pytest.mark.parametrize(
    ("text", "stale"),
    [
        (trap("41 8b 4f 20 66 <90> f7 c1 00"), True),  # a jump label that is a no-op again
        (trap("41 8b 4f 20 0f <1f> 44 00 00"), True),
        (trap("41 8b 4f 20 cc <90> f7 c1 00"), False),  # the kernel has an int3 where it trapped
        (trap("41 8b 4f 20 66 <90> f7 c1 00", oops="invalid opcode: 0000 [#1] SMP"), False),
        (NULL_POINTER + trap("41 8b 4f 20 66 <90> f7 c1 00"), False),  # what came first counts
        ("[    4.4] int3: 0000 [#1] SMP\n" + DIED, False),  # nothing shows what memory held
        ("", False),
    ],
)
def test_a_breakpoint_that_memory_does_not_hold_is_the_emulator_s_fault(
    text: str, stale: bool
) -> None:
    assert console.trapped_on_stale_code("[    0.0] Linux version 6.1\n" + text) is stale


@given(st.text())
def test_any_text_has_a_short_printable_last_line(text: str) -> None:
    verdict = console.judge(text)
    for said in (console.last_line(text), (verdict.reason or "") if verdict else ""):
        assert said.isprintable() or said == ""
        assert len(said) <= 2 * limits.CONSOLE_LINE_CHARACTERS + 2


def files(
    tmp_path: Path, console_bytes: bytes = b"", results_bytes: bytes = b""
) -> tuple[Path, Path]:
    paths = tmp_path / "console.log", tmp_path / "results.tar"
    for path, content in zip(paths, (console_bytes, results_bytes), strict=True):
        path.write_bytes(content)
    return paths


def test_a_machine_that_talks_is_left_alone(tmp_path: Path) -> None:
    console_log, results = files(tmp_path)
    look = watch.Watch(console_log, results, BootLimits(wall=1, quiet_boot=0.2, quiet_job=0.2))
    for number in range(4):
        time.sleep(0.1)
        console_log.write_bytes(bytes(number + 1))
        look(0.0)


@pytest.mark.parametrize(
    ("results_bytes", "when"), [(b"", "before the job began"), (b"x", "while the job ran")]
)
def test_a_silent_machine_is_hung_and_its_last_words_are_reported(
    tmp_path: Path, results_bytes: bytes, when: str
) -> None:
    console_log, results = files(
        tmp_path, b"[ 1.0] x86: Booting SMP configuration:\n", results_bytes
    )
    look = watch.Watch(console_log, results, BootLimits(wall=1, quiet_boot=0.05, quiet_job=0.05))
    look(0.0)
    time.sleep(0.1)
    with pytest.raises(watch.Stop) as stop:
        look(0.1)
    assert stop.value.verdict is not None
    assert stop.value.verdict.status is BootStatus.HUNG
    assert f"{when}; last on the console: x86: Booting SMP configuration:" in (
        stop.value.verdict.reason or ""
    )


def test_a_flooded_console_ends_the_boot(tmp_path: Path) -> None:
    console_log, results = files(tmp_path, b"mad\n" * (limits.CONSOLE_BYTES // 4 + 1))
    with pytest.raises(watch.Stop) as stop:
        watch.Watch(console_log, results, PATIENT)(0.0)
    assert stop.value.verdict == Verdict(
        status=BootStatus.LIMIT,
        reason="the console was flooded with more than 1 MiB; last on the console: mad",
    )


def test_a_guest_that_has_ended_its_job_but_cannot_power_off_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "POWER_OFF_SECONDS", 0.05)
    console_log, results = files(tmp_path)
    look = watch.Watch(console_log, results, PATIENT)
    look(0.0)
    results.write_bytes(bytes(1000) + f"{runner.END}\0".encode() + bytes(9000))
    look(0.1)
    time.sleep(0.1)
    with pytest.raises(watch.Stop) as stop:
        look(0.2)
    assert stop.value.verdict is None


def test_only_the_runner_s_last_word_is_an_end(tmp_path: Path) -> None:
    _, results = files(tmp_path, b"", b"facts/kernel_release\0" + bytes(2000))
    assert not watch.ended(results)
    assert not watch.ended(tmp_path / "absent")
