"""A build lowers its oom_score_adj, shortens its log and reads the host's boot parameters."""

from __future__ import annotations

from tests.attack.hostile_build import attack
from tests.attack.target import Result, Target

NAME = "build-escape"
WANTED = "a score of 1000, a whole log, no boot parameters"
_SCRIPT = """
(echo 0 > /proc/self/oom_score_adj) 2>/dev/null
echo ATTACK score $(cat /proc/self/oom_score_adj)
for fd in 1 2; do
  python3 -c "import os; os.ftruncate($fd, 0); print('ATTACK shortened by $fd')"
done
[ -s /proc/cmdline ] && echo ATTACK parameters
"""


def run(target: Target) -> Result:
    """Try all three in one build."""
    attacked = attack(_SCRIPT)
    whole = attacked.log.startswith("swingbot: commit ")
    return Result(
        line=f"{', '.join(attacked.said)}; the log is {'whole' if whole else 'shortened'}",
        held=attacked.said == ["score 1000"] and whole,
    )
