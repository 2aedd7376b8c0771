"""A limit for each client, of requests or of processor seconds: a token bucket that fills at a
steady rate.

The level is stored as the moment at which the bucket is full again, one number for each client
(the generic cell rate algorithm, ITU-T I.371).
"""

from __future__ import annotations

import ipaddress
import math
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from swingbot.core import limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """`burst` tokens at once, then `per_second`."""

    per_second: float
    burst: float


UNLIMITED: Final = Rate(per_second=1.0, burst=math.inf)


class Buckets:
    """Buckets by client. Times are seconds of any clock that does not go back."""

    def __init__(self, rate: Rate, remembered: int = limits.CLIENTS) -> None:
        self._rate, self._remembered = rate, remembered
        self._full_at: OrderedDict[str, float] = OrderedDict()

    def wait(self, client: str, now: float, tokens: float = 1.0) -> float:
        """Seconds until the bucket has `tokens`; 0.0 if it has."""
        level = (self._rate.burst - tokens) / self._rate.per_second
        return max(0.0, self.debt(client, now) - level)

    def debt(self, client: str, now: float) -> float:
        """Seconds until the bucket is full, which grow with what was taken lately."""
        return max(0.0, self._full_at.get(client, now) - now)

    def take(self, client: str, now: float) -> float:
        """Take a token and return 0.0, or return the seconds to wait and take nothing."""
        wait = self.wait(client, now)
        if wait == 0.0:
            self.charge(client, 1.0, now)
        return wait

    def charge(self, client: str, tokens: float, now: float) -> None:
        """Take `tokens`, more than there are if need be."""
        self._full_at[client] = (
            max(self._full_at.get(client, now), now) + tokens / self._rate.per_second
        )
        self._full_at.move_to_end(client)
        while len(self._full_at) > self._remembered:
            self._full_at.popitem(last=False)

    def __len__(self) -> int:
        return len(self._full_at)


def client_key(address: str) -> str:
    """Identify a client: an IPv4 address, or the /64 within which an IPv6 host chooses
    addresses.
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return "unknown"
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)
