"""End the orders of kernels whose token no longer vouches for them."""

from __future__ import annotations

from swingbot.service.ports import Transaction


def end_unvouched(tx: Transaction) -> None:
    """Fail open orders of trusted kernels that only a token vouched for which has ended, running
    ones too.
    """
    for number, token in tx.variants.unvouched().items():
        how = "was revoked" if token.revoked_by else "expired"
        why = f"token {token.number} of {token.who}, which vouched for this kernel, {how}"
        tx.orders.set_state(number, "failed", why)
