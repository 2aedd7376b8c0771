"""netperf's classic output, with LKP's names and arithmetic.

Each instance prints a banner, a header of several lines and one row (UDP_STREAM two:
sender, then receiver). Columns are found by the words of the header, because -c and -C add some.
Sums are plain left-to-right additions, as LKP's are, so that both give the same last digit.

An instance that stalled prints a whole row with a rate of 0.00, and one that was ended prints its
banner alone: neither is a result.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from swingbot_jobs.reading.result import ParseError

ROW = re.compile(r"\s*\d+(?:\s+-?\d+(?:\.\d+)?)+\s*")
# Banner, header and dividers. Any other line that is not a row is an error message.
KNOWN = re.compile(
    r"MIGRATED |.* TEST from |(?:Local /Remote|Recv |Socket |Size |Send |bytes )|--- |Iterations:"
)
BANNER = re.compile(r"(?>.*? TEST from ).* to ")
RATE = re.compile(r"\d+\.\d+")  # a row that was cut within the rate may lack the point
MAX_INSTANCES = 10_000
# Shortest part of the time asked for that counts as the whole run.
WHOLE = 0.9


@dataclass
class Reading:
    """State of the parser: the columns of the last header, and all rows so far."""

    units: set[str] = field(default_factory=set)
    columns: list[str] = field(default_factory=list)
    sent: list[float] = field(default_factory=list)
    received: list[float] = field(default_factory=list)
    begun: int = 0
    times: list[float] = field(default_factory=list)
    message_bytes: float = 0.0
    iterations: int = 1


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return the throughput of one run.

    Raises ParseError if an instance is missing: the mean of the others would mislead.
    """
    text = files.get("stdout", "")
    reading = Reading()
    for line in text.splitlines():
        read_line(reading, line[:500])
    check_complete(reading, text, params)
    return metrics(reading)


def read_line(reading: Reading, line: str) -> None:
    words = line.split()
    if is_header(words):
        reading.columns = words
    elif BANNER.match(line):
        reading.begun += 1
    elif "10^6bits" in line:
        reading.units.add("Mbps")
    elif "per sec" in line:
        reading.units.add("tps")
    elif match := re.fullmatch(r"Iterations:\s*([1-9]\d{0,5})", line.strip()):
        reading.iterations = int(match[1])
    elif reading.columns and ROW.fullmatch(line):
        read_row(reading, words)


def is_header(words: list[str]) -> bool:
    """The header line above the units: at least two sizes, the time, and the rate to its right."""
    rate = next((index for index, word in enumerate(words) if word in ("Throughput", "Rate")), 0)
    return "Time" in words and 2 <= words.index("Time") < rate


def read_row(reading: Reading, words: list[str]) -> None:
    """Take one row.

    Columns that -c and -C add are at the right end, so positions are counted from the left.
    """
    rate = next(
        index for index, word in enumerate(reading.columns) if word in ("Throughput", "Rate")
    )
    row = [float(word) for word in words]
    errors = "Errors" in reading.columns
    if errors and "." in words[1]:  # receiver: no message size before the time, no errors after it
        if len(row) >= rate - 1 and RATE.fullmatch(words[rate - 2]):
            reading.received.append(row[rate - 2])
    elif len(row) > rate and RATE.fullmatch(words[rate]):
        reading.sent.append(row[rate])
        reading.times.append(row[reading.columns.index("Time")])
        # Socket sizes are left of the message size; a request-response row has none.
        reading.message_bytes = row[1 if errors else 2]


def check_complete(reading: Reading, text: str, params: Mapping[str, str]) -> None:
    count = len(reading.sent)
    expected = (
        int(params["nr_threads"]) * reading.iterations
        if params.get("nr_threads", "").isdecimal()
        else max(reading.begun, count)
    )
    complaint = next(
        (
            f"; netperf said: {line.strip()[:200]}"
            for line in text.splitlines()
            if line.strip() and not KNOWN.match(line) and not ROW.fullmatch(line)
        ),
        "",
    )
    if count == 0:
        raise ParseError(
            f"no netperf instance printed a result{complaint}"
            if text.strip()
            else "netperf printed nothing"
        )
    if count != expected:
        raise ParseError(f"{count} of {expected} netperf instances printed a result{complaint}")
    if "Errors" in reading.columns and len(reading.received) != count:
        raise ParseError(f"{len(reading.received)} of {count} netperf receivers printed a result")
    shortest, longest = min(reading.times), max(reading.times)
    if still := sum(rate <= 0 for rate in reading.sent + reading.received):
        raise ParseError(
            f"netperf moved nothing in {longest:g} s: {still} of {count} instances"
            " printed a rate of 0"
        )
    asked = params.get("runtime", "")
    wanted = float(asked) if asked.isdecimal() else longest
    if shortest <= 0 or shortest < WHOLE * wanted:
        raise ParseError(f"netperf ran for {shortest:g} of {wanted:g} s{complaint}")
    if count > MAX_INSTANCES or len(reading.units) != 1:
        raise ParseError("netperf's headers have no known unit, or two")


def metrics(reading: Reading) -> dict[str, float | list[float]]:
    """LKP's numbers.

    Receiver metrics are missing where netperf reports no receiver; LKP prints 0 there.
    """
    (unit,), count, elapsed = reading.units, len(reading.sent), reading.times[-1]
    sent, received = added(reading.sent), added(reading.received)
    both = sent / count + received / count
    both_total = sent / reading.iterations + received / reading.iterations
    values: dict[str, float | list[float]] = {
        f"Throughput_{unit}": sent / count,
        f"ThroughputBoth_{unit}": both,
        f"Throughput_total_{unit}": sent / reading.iterations,
        f"ThroughputBoth_total_{unit}": both_total,
    }
    if reading.received:
        values[f"ThroughputRecv_{unit}"] = received / count
        values[f"ThroughputRecv_total_{unit}"] = received / reading.iterations
    if unit == "tps":
        values["workload"] = both_total * elapsed
    elif reading.message_bytes > 0:
        # packets
        values["workload"] = both_total * elapsed * 1e6 / 8 / reading.message_bytes
    return values


def added(values: list[float]) -> float:
    total = 0.0
    for value in values:
        total += value
    return total
