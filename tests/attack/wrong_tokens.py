"""Wrong tokens by the dozen, then the valid token of an attempt and the sign-in page."""

from __future__ import annotations

from typing import Final

import httpx

from tests.attack.target import Result, Target

NAME: Final = "wrong tokens"
WANTED: Final = "wrong tokens are slowed down, and lock no valid one out of the same address"


def run(target: Target, *, valid: dict[str, str] | None = None, tries: int = 7) -> Result:
    """`valid`: headers with a reader's token (default: the token of `target`); without one only the
    refusals are judged.
    """
    if valid is None and target.token:
        valid = {"Authorization": f"Bearer {target.token}"}
    with httpx.Client(base_url=target.url, timeout=30, trust_env=False) as client:
        wrong = [_ask(client, "Bearer swingbot_" + "x" * 43) for _ in range(tries)]
        right = _ask(client, valid["Authorization"]) if valid is not None else 0
    # a valid token without the role for this address, or with it: never 401 or 429
    held = wrong[-1] == 429 and right not in (401, 429)
    return Result(held, f"{tries} wrong tokens: {wrong}; then a valid one: {right or 'not tried'}")


def _ask(client: httpx.Client, authorization: str) -> int:
    return client.post("/compare", json={}, headers={"Authorization": authorization}).status_code
