"""Look up the images that variants were built into."""

from __future__ import annotations

from collections.abc import Sequence

from swingbot.core.model.records import Variant
from swingbot.service.ports.builds import KernelBuilds


def images_of(builds: KernelBuilds, variants: Sequence[Variant]) -> list[str | None]:
    """Return the sha256 of each variant's image, in order; None where it is not built yet or does
    not build.
    """
    built = builds.by_key({variant.build_key for variant in variants})
    return [
        build.image_sha256 if (build := built.get(variant.build_key)) is not None else None
        for variant in variants
    ]


def all_images_of(builds: KernelBuilds, variants: Sequence[Variant]) -> list[str] | None:
    """Return the sha256 of each variant's image; None if any variant has no image."""
    images = [image for image in images_of(builds, variants) if image is not None]
    return images if len(images) == len(variants) else None
