"""Report which composed worlds were drawn and which families are honest by now."""

from __future__ import annotations

import pytest

# Property of a test -> its prefix.
SHOWN = {"composed": "composed worlds", "honest": "honest by now"}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            for name, said in getattr(report, "user_properties", []):
                if name in SHOWN:
                    terminalreporter.write_line(f"{SHOWN[name]}: {said}")
