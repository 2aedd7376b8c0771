"""A testbox of the `command` driver: a script that notes each start and waits until the test lets
it end.
"""

from __future__ import annotations

from pathlib import Path

NAME = "stub"

SCRIPT = """\
#!/bin/sh
echo started >> {root}/starts
while [ ! -e {root}/go ]; do sleep 0.05; done
echo 'Linux version stub' > "$SWINGBOT_OUT/console.log"
tar -cf "$SWINGBOT_OUT/results.tar" -T /dev/null
"""


class StubTestbox:
    """Files under `root`: how often a boot was started, and the permission to end."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.root = root
        script = root / "driver.sh"
        script.write_text(SCRIPT.format(root=root))
        self.yaml = f"""\
name: {NAME}
tbox_group: {NAME}
driver: command
command: {{argv: [/bin/sh, {script}]}}
model: a script
nr_cpu: 1
memory_mb: 64
"""

    def starts(self) -> int:
        file = self.root / "starts"
        return len(file.read_text().splitlines()) if file.exists() else 0

    def let_go(self) -> None:
        (self.root / "go").touch()
