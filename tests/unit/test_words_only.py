"""The check that a rewording of goldens moved no fact."""

from __future__ import annotations

import pytest

from tests.golden.words_only import moved

MAIL = "netperf.Throughput_Mbps -9.3% of 12 boots\nfound by swingbot: x18, x19\n"


@pytest.mark.parametrize(
    ("name", "before", "now"),
    [
        ("a.txt", MAIL, MAIL.replace("found by swingbot", "the boots that show it")),
        ("a.jsonl", '{"why":"both ends first"}\n', '{"why":"measure the ends"}\n'),
        ("a.yaml", "reason: is no commit\n", "reason: not a valid commit\n"),
        ("a.yaml", "lock: no boot beside it\n", "lock: no boot at the same time\n"),
        ("a.sh", "# the first two of them\nrm x\n", "# the first\n# two events\nrm x # here\n"),
        ("a.sh", "list='a=/p/a b=/p/b'\n", "list='a=/p/a\nb=/p/b'\n"),
        ("a.sh", "a --long | b\n", "a --long |\n\tb\n"),
        ("a.sh", "a --long b\n", "a --long \\\n\tb\n"),
    ],
)
def test_a_rewording_moves_no_fact(name: str, before: str, now: str) -> None:
    assert moved(name, before, now) == ""


@pytest.mark.parametrize(
    ("name", "before", "now", "fact"),
    [
        ("a.txt", MAIL, MAIL.replace("-9.3%", "-9.4%"), "-9.4%"),
        ("a.txt", MAIL, MAIL.replace("x18, x19", "x19, x18"), "x19"),
        ("a.txt", MAIL, MAIL.replace("Throughput_Mbps", "Throughput"), "netperf.Throughput"),
        ("a.txt", "1 metric worse\n", "1 metric better\n", "better"),
        ("a.txt", MAIL, MAIL + "and 3 more\n", "3"),
        ("a.json", '{"why": "x"}', '{"reason": "x"}', "reason:"),
        ("a.jsonl", '{"n":1}\n', '{"n":2}\n', "2"),
        ("a.yaml", "ready: true\n", "ready: false\n", "False"),
        ("a.yaml", "verdict: same\n", "verdict: unknown\n", "same"),
        ("a.sh", "mkdir here\n", "rmdir here\n", "rmdir"),
        ("a.sh", "# at most 80 lines\n", "# at most 90 lines\n", "90"),
        ("a.sh", "echo ${a#b} c\n", "echo ${a#b} d\n", "d"),
    ],
)
def test_a_changed_fact_is_named(name: str, before: str, now: str, fact: str) -> None:
    assert repr(fact) in moved(name, before, now)
