"""A build lowers its oom_score_adj, changes its log and reads the host's boot parameters."""

from __future__ import annotations

from tests.attack.hostile_build import attack
from tests.attack.target import Result, Target

NAME = "build-escape"
WANTED = "a score of 1000, a whole log, no boot parameters"
_SCRIPT = """
for n in 0 -500; do
  (echo $n > /proc/self/oom_score_adj) 2>/dev/null
done
echo ATTACK score $(cat /proc/self/oom_score_adj)
for fd in 1 2; do
  python3 -c "import os; os.ftruncate($fd, 0); print('ATTACK shortened by $fd')"
  python3 -c "import os; os.pwrite($fd, b'x', 0); print('ATTACK overwrote by $fd')"
done
if [ -s /proc/cmdline ]; then echo ATTACK parameters; fi
"""


def run(target: Target) -> Result:
    """Try all of it in one build."""
    attacked = attack(_SCRIPT)
    whole = attacked.log.startswith("swingbot: commit ")
    return Result(
        line=f"{', '.join(attacked.said)}; the log is {'whole' if whole else 'shortened'}",
        held=attacked.status == "built" and attacked.said == ["score 1000"] and whole,
    )
