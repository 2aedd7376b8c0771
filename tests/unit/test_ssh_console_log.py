"""Report of one order from a console log, and the verdict on its boot."""

from __future__ import annotations

import base64
import gzip
import hashlib
import random

from hypothesis import given
from hypothesis import strategies as st

from swingbot_jobs.testbox.ssh import SshDriver
from swingbot_worker.testbox.ssh import boot_verdict
from swingbot_worker.testbox.ssh.console_log import ConsoleReport, listen, results
from swingbot_worker.testbox.verdict import BootStatus

TOKEN = "o7-a9-1234abcd"
IDLE = (
    "[    0.000000] Linux version 6.1.0-56-amd64 (debian) #1\r\n[    0.000000] Command line: "
    "root=LABEL=root ro\r\nBUG: unrelated\r\n"
)
OURS = (
    "iron login: [  99.1] sysrq: Emergency Remount R/O\r\n[ 100.0] kexec_core: Starting new "
    "kernel\r\n"
    f"[    0.000000] Linux version 6.1.192 (swingbot@swingbot) #1\r\n[    0.000000] Command "
    f"line: swingbot={TOKEN} panic=2\r\n"
)
UP = f"[    6.248385] swingbot: {TOKEN} up\r\n"
DONE = f"[    9.1] swingbot: {TOKEN} done 512\r\n"
PANIC = "[    7.0] Kernel panic - not syncing: sysrq triggered crash\r\n"


def framed(content: bytes) -> str:
    packed = gzip.compress(content, mtime=0)
    text = base64.b64encode(packed).decode()
    lines = [text[start : start + 76] for start in range(0, len(text), 76)]
    head = f"SB+{len(lines)}:{hashlib.sha256(packed).hexdigest()}:\r\n"
    return (
        head + "".join(f"SB:{number:06d}:{line}:\r\n" for number, line in enumerate(lines)) + head
    )


CONTENT = bytes(random.Random(5).randbytes(3000))


def report_of(text: str) -> ConsoleReport:
    return listen(text, TOKEN)


def test_only_the_kernel_with_the_token_is_under_test() -> None:
    assert not report_of(IDLE).began
    assert not report_of(IDLE + "swingbot: other up\n").began
    report = report_of(IDLE + OURS + UP)
    assert (report.began, report.up, report.done, report.gone) == (True, True, False, False)
    assert "unrelated" not in report.text and "Starting new kernel" not in report.text


def test_the_idle_kernel_s_banner_behind_ours_says_that_the_testbox_has_reset() -> None:
    report = report_of(OURS + UP + PANIC + IDLE)
    assert report.gone
    assert "Kernel panic" in report.text and "unrelated" not in report.text


def test_another_order_s_words_are_not_this_one_s() -> None:
    assert not report_of(OURS + UP.replace(TOKEN, "o6-a8-99999999")).up


def test_results_come_whole_from_a_console() -> None:
    assert results(OURS + UP + DONE + framed(CONTENT), 1 << 20) == CONTENT


def test_incomplete_results_are_rejected() -> None:
    text = framed(CONTENT)
    assert results(text[: len(text) // 2], 1 << 20) is None


def test_results_above_the_limit_are_rejected() -> None:
    assert results(framed(bytes(5000)), 4999) is None
    assert results(framed(bytes(5000)), 5000) == bytes(5000)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 5000), st.sampled_from(["\n[ 9.9] kernel: line\r\n", "", "x", "\0"])
        ),
        min_size=1,
        max_size=8,
    )
)
def test_results_are_right_or_none_however_the_first_copy_is_damaged(
    damage: list[tuple[int, str]],
) -> None:
    """The second copy is whole, so as long as no line's damaged copy looks like a line the
    result is there; it is never another one."""
    first, second = framed(CONTENT), framed(CONTENT)
    for place, what in damage:
        place %= len(first)
        first = first[:place] + what + first[place + 1 :]
    assert results(first + second, 1 << 20) in (CONTENT, None)
    assert results(second, 1 << 20) == CONTENT


@given(st.text(max_size=3000))
def test_any_console_output_is_read_without_an_error(text: str) -> None:
    report_of(OURS + text)
    assert results(text, 1000) is None


def test_frames_are_not_part_of_the_kernel_log() -> None:
    assert "SB" not in report_of(OURS + UP + DONE + framed(CONTENT)).text


def test_a_panic_is_judged_before_anything_else() -> None:
    verdict = boot_verdict.judge(report_of(OURS + UP + PANIC), results=True)
    assert verdict is not None and verdict.status is BootStatus.PANICKED


def test_an_oops_that_panics_because_we_asked_for_it_is_an_oops() -> None:
    oops = (
        "[ 7.0] BUG: kernel NULL pointer dereference, address: 0\r\n[ 7.1] Kernel panic - "
        "not syncing: Fatal exception\r\n"
    )
    verdict = boot_verdict.judge(report_of(OURS + UP + oops), results=False)
    assert verdict is not None and (verdict.status, verdict.reason) == (
        BootStatus.OOPSED,
        "BUG: kernel NULL pointer dereference, address: 0",
    )
    verdict = boot_verdict.judge(
        report_of(OURS + UP + oops.replace("Fatal exception", "Fatal exception in interrupt")),
        results=False,
    )
    assert verdict is not None and verdict.status is BootStatus.PANICKED


def test_a_testbox_that_reset_before_the_end_has_panicked_and_one_that_goes_on_has_not() -> None:
    assert boot_verdict.judge(report_of(OURS + UP), results=False) is None
    verdict = boot_verdict.judge(report_of(OURS + UP + IDLE), results=False)
    assert (
        verdict is not None
        and verdict.status is BootStatus.PANICKED
        and "reset" in str(verdict.reason)
    )


def test_results_make_it_up() -> None:
    verdict = boot_verdict.judge(report_of(OURS + UP + DONE + IDLE), results=True)
    assert verdict is not None and verdict.status is BootStatus.UP


def test_a_card_without_a_driver_is_the_kernel_s_doing() -> None:
    verdict = boot_verdict.judge(
        report_of(OURS + UP + DONE + f"[ 9.2] swingbot: {TOKEN} no card 52:54:00:12:34:56\r\n"),
        results=False,
    )
    assert (
        verdict is not None
        and verdict.status is BootStatus.HUNG
        and "52:54:00:12:34:56" in str(verdict.reason)
    )


def test_a_reboot_that_ends_in_the_idle_system_is_our_fault() -> None:
    driver = SshDriver(host="x", key="/k", known_hosts="/h", enter="reboot")
    verdict, fault = boot_verdict.never_began("box", driver)
    assert verdict is None and fault is not None and "reboot_command" in fault
