"""`make conformance LKP_SRC=DIR`: job splitting, parsers and real runs of `lkp run` against an
lkp-tests checkout, as a table of differences.

Exit status: 0 all that could be compared is equal, 1 something differs, 2 there is nothing to
compare with.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.conformance import engine, jobs, parsers
from tests.conformance.row import Row, table
from tests.demo.process import CommandError


def main() -> int:
    """Compare everything that is here."""
    given = os.environ.get("LKP_SRC", "")
    lkp_src = Path(given)
    if not given or not (lkp_src / "sbin" / "split-job").is_file():
        print(
            (
                f"LKP_SRC={given}: name the directory of an lkp-tests checkout (it has "
                f"sbin/split-job): make conformance LKP_SRC=~/lkp-tests"
            ),
            file=sys.stderr,
        )
        return 2
    try:
        rows: list[Row] = [
            row for part in (jobs, parsers, engine) for row in part.check(lkp_src.resolve())
        ]
    except (RuntimeError, CommandError) as error:
        print(f"lkp-tests failed: {error}", file=sys.stderr)
        return 2
    print(table(rows))
    differing, compared = sum(bool(row.differences) for row in rows), sum(r.compared for r in rows)
    print(
        f"{compared} compared in {len(rows)} lines of this table, {differing} of them with "
        "differences"
    )
    return 1 if differing else 0 if compared else 2


if __name__ == "__main__":
    raise SystemExit(main())
