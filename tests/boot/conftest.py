"""Tests here boot real kernels; see tests/kernel_fixtures.py."""

from tests.kernel_fixtures import base_kernel, kernel_repo, site, wired_kernel

__all__ = ["base_kernel", "kernel_repo", "site", "wired_kernel"]
