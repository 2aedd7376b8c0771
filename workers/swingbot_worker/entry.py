"""The program `swingbot-worker`; prints one line of advice if the extra `worker` is missing."""

from __future__ import annotations

import sys

from swingbot_jobs import extras


def main() -> None:
    """Run the worker's command line. Exits with status 2 if its dependencies are not installed."""
    if lacking := extras.missing(["worker"]):
        print(extras.advice("swingbot-worker", lacking), file=sys.stderr)  # noqa: T201
        raise SystemExit(2)
    from swingbot_worker import cli

    cli.main()


if __name__ == "__main__":
    main()
