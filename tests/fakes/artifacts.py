"""Files in an artifact store, for tests."""

from __future__ import annotations

import hashlib
import io

from swingbot.adapters.artifacts import ArtifactDirectory


def stored(store: ArtifactDirectory, content: bytes) -> str:
    """Put `content` into the store; answers its sha256."""
    sha256 = hashlib.sha256(content).hexdigest()
    store.put(io.BytesIO(content), sha256)
    return sha256
