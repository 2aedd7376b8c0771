"""Version of the documents and requests that a service and its clients exchange over HTTP.

It grows when a document of today could no longer be read, or a request no longer be made, by
yesterday's program. New keys do not change it.
"""

from __future__ import annotations

from typing import Final

HEADER: Final = "swingbot-documents"  # of every answer: the version of the service
VERSION: Final = 1
