"""The program `swingbot-worker`: refuses in one line where the extra `worker` is not installed."""

from __future__ import annotations

import sys

from swingbot_jobs import extras


def main() -> None:
    """Run the command line of the worker; exit status 2 without its dependencies."""
    if lacking := extras.missing(["worker"]):
        print(extras.advice("swingbot-worker", lacking), file=sys.stderr)  # noqa: T201
        raise SystemExit(2)
    from swingbot_worker import cli

    cli.main()


if __name__ == "__main__":
    main()
