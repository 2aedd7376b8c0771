"""The document that `iperf3 -J` prints, with LKP's names."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from swingbot_jobs.printable import printable
from swingbot_jobs.reading.result import ParseError

NAMES = {"tcp.sender.bps": "sum_sent", "tcp.receiver.bps": "sum_received"}


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return the rates of sender and receiver in bit/s.

    Raises ParseError without both, or if not all streams took part.
    """
    document = _object(_document(files.get("stdout", "")))
    if isinstance(error := document.get("error"), str):
        raise ParseError(f"iperf3 said: {printable(error[:200])}")
    end = _object(document.get("end"))
    streams = end.get("streams")
    wanted = params.get("sessions", "")
    if wanted.isdecimal() and (not isinstance(streams, list) or len(streams) != int(wanted)):
        raise ParseError(f"iperf3 did not print {wanted} streams")
    return {name: _rate(_object(end.get(key))) for name, key in NAMES.items()}


def _document(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ParseError("iperf3 printed no whole document") from None


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ParseError("iperf3's document has no result of a TCP stream")
    return value


def _rate(total: Mapping[str, Any]) -> float:
    value = total.get("bits_per_second")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ParseError("iperf3's document has no rate")
    if not 0 < value < 1e18 or math.isnan(value):
        raise ParseError("iperf3 printed a rate that cannot be")
    return float(value)
