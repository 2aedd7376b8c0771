"""End the orders of kernels whose token no longer vouches for them."""

from __future__ import annotations

from swingbot.service.ports.orders import Orders
from swingbot.service.ports.variants import Variants


def end_unvouched(orders: Orders, variants: Variants) -> None:
    """Fail open orders of trusted kernels that only a token vouched for which has ended, running
    ones too.
    """
    for number, token in variants.unvouched().items():
        how = "was revoked" if token.revoked_by else "expired"
        why = f"token {token.number} of {token.who}, which vouched for this kernel, {how}"
        orders.set_state(number, "failed", why)
