"""End the orders of kernels whose token no longer vouches for them."""

from __future__ import annotations

from swingbot.service.ports.orders import Orders
from swingbot.service.ports.variants import Variants


def end_unvouched(orders: Orders, variants: Variants) -> None:
    """Fail open orders, running ones too, of kernels that are trusted only because of a token that
    was revoked or has expired.
    """
    for number, token in variants.unvouched().items():
        how = "was revoked" if token.revoked_by else "expired"
        why = f"token {token.number} of {token.who}, which vouched for this kernel, {how}"
        orders.set_state(number, "failed", why)
