"""An outcome is read once, from a document of the schema."""

from __future__ import annotations

from typing import Any

import pytest

from swingbot.core.model.outcome import Outcome
from swingbot_jobs.contract.orders import ContractError, check_outcome

KEY, IMAGE = "b" * 64, "a" * 64


def a_build(**more: Any) -> dict[str, Any]:
    kernel = {
        "build_key": KEY,
        "compiler_version": "gcc 12",
        "cached": False,
        "image_sha256": IMAGE,
    }
    return {
        "version": 1,
        "kind": "build",
        "order": "o1",
        "attempt": "a1",
        "status": "built",
        "seconds": 60.0,
        "files": {"bzImage": {"sha256": IMAGE, "size": 1}},
        "kernel_build": kernel,
    } | more


def test_a_build_is_read_with_its_kernel() -> None:
    outcome = Outcome.read(check_outcome(a_build()))
    assert outcome.kernel is not None and outcome.kernel.build_key == KEY
    assert outcome.image_is_there and outcome.fault is None
    assert (outcome.origin, outcome.reason, outcome.facts) == ("measured", None, {})


def test_an_image_that_was_not_uploaded_is_not_there() -> None:
    assert not Outcome.read(a_build(files={})).image_is_there
    assert Outcome.read(a_build(files={}, status="failed")).image_is_there


def test_an_order_that_a_testbox_cannot_execute_is_unfit() -> None:
    assert Outcome.read(a_build(status="infra", fault="order")).fault == "order"
    assert Outcome.read(a_build(status="infra")).fault is None


@pytest.mark.parametrize("key", ["kind", "status", "seconds", "files"])
def test_a_missing_key_is_named(key: str) -> None:
    document = {name: value for name, value in a_build().items() if name != key}
    with pytest.raises(ContractError, match=f"'{key}' is missing"):
        Outcome.read(document)


def test_a_missing_key_of_the_kernel_is_named() -> None:
    with pytest.raises(ContractError, match="'compiler_version' is missing"):
        Outcome.read(a_build(kernel_build={"build_key": KEY, "cached": True}))
