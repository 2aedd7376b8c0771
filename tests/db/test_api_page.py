"""docs/api.md: the same request by command, by curl and from Python gets the same plan."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.asking import Site

ROOT: Final = Path(__file__).resolve().parents[2]


def test_command_curl_and_python_print_the_same_plan(
    idle: Site, ada: dict[str, str], tmp_path: Path
) -> None:
    text = (ROOT / "docs" / "api.md").read_text().replace("linux", "fake")
    section = text.partition("## From Python\n")[2].partition("\n## ")[0]
    commands = re.findall(r"(?:^    .*\n)+", section, re.M)
    [script] = re.findall(r"^```python\n(.*?)^```", section, re.M | re.S)
    assert len(commands) == 2
    env = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "SWINGBOT_URL": f"http://127.0.0.1:{idle.web.port}",
        "SWINGBOT_TOKEN": ada["Authorization"].split()[1],
        "XDG_CONFIG_HOME": str(tmp_path),
        "no_proxy": "127.0.0.1",
    }
    printed = []
    for words in (*(["sh", "-ec", one] for one in commands), [sys.executable, "-c", script]):
        done = subprocess.run(
            words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout)
    assert printed[0] == printed[1] == printed[2]
    assert "2 rows of tree fake, 3 boots of each" in printed[0]
