"""What a worker reports of one attempt (`jobs/schema/`), read from its document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from swingbot_jobs.contract.orders import ContractError, Fault, OutcomeStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltKernel:
    """The kernel of an outcome of kind `build`, built or not."""

    build_key: str
    compiler_version: str
    cached: bool
    image_sha256: str | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    errors: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one attempt. `seconds` is its wall time."""

    kind: Literal["build", "boot"]
    status: OutcomeStatus
    seconds: float
    files: Mapping[str, Mapping[str, Any]]  # {"sha256", "size"} by name
    reason: str | None = None
    fault: Fault | None = None  # why an infrastructure failure is not the testbox's
    origin: str = "measured"
    kernel: BuiltKernel | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)  # of the environment of a boot

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Outcome:
        """Read a document of the schema. Raises ContractError, which names a missing key."""
        try:
            kernel = document.get("kernel_build")
            return cls(
                kind=document["kind"],
                status=document["status"],
                seconds=document["seconds"],
                files=document["files"],
                reason=document.get("reason"),
                fault=document.get("fault") if document["status"] == "infra" else None,
                origin=document.get("origin", "measured"),
                kernel=None if kernel is None else _kernel(kernel),
                facts=document.get("facts", {}),
            )
        except KeyError as missing:
            raise ContractError(f"outcome: {missing.args[0]!r} is missing") from None

    def sha256_of(self, file: str) -> str | None:
        """Return the hash of an uploaded file; None if there is none of this name."""
        return self.files[file]["sha256"] if file in self.files else None

    @property
    def image_is_there(self) -> bool:
        """Whether the image with the claimed hash was uploaded, if a kernel was built."""
        return self.status != "built" or (
            self.kernel is not None and self.kernel.image_sha256 == self.sha256_of("bzImage")
        )


def _kernel(document: Mapping[str, Any]) -> BuiltKernel:
    return BuiltKernel(
        build_key=document["build_key"],
        compiler_version=document["compiler_version"],
        cached=document["cached"],
        image_sha256=document.get("image_sha256"),
        sizes=document.get("sizes", {}),
        errors=tuple(document.get("errors", ())),
    )
