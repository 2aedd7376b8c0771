"""A tree from elsewhere is added only with a level of trust; trees that exist keep theirs."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result

from swingbot.app.cli import main
from swingbot.service.ports import RequestError
from swingbot.service.watch.trees import trust_of_new_tree
from tests import builders as make
from tests.fakes.brain import Brain
from tests.fakes.mail import brain_environment

# No name in .invalid can be resolved (RFC 6761).
URL = "https://git.invalid/linux.git"
REST = ("--branch", "main", "--base", "v6.1", "--job", "vm-page-fault.yaml", "--paths", "mm/*")


def add(brain: Brain, *words: str) -> Result:
    environment = brain_environment(Path(brain.settings.paths.state), brain.settings.db.url)
    return CliRunner().invoke(main, ["tree", "add", *words], env=environment)


@pytest.mark.parametrize("url", [URL, "git@git.invalid:linux.git", "ssh://git.invalid/linux.git"])
def test_a_url_without_a_level_is_refused_before_anything_is_fetched(
    brain: Brain, url: str
) -> None:
    done = add(brain, "next", url, *REST)
    assert done.exit_code == 2 and "fetching" not in done.output
    for words in (
        "trusted: you trust everyone who can push to it;",
        "untrusted: it may contain anyone's code;",
    ):
        assert words in done.output
    # the command to type is this one, with a level: it gets as far as the fetch
    typed = done.output.partition("type: ")[2].partition(" (or trusted)")[0]
    command = shlex.split(typed)
    assert command[:3] == ["swingbot", "tree", "add"] and command[-2:] == ["--trust", "untrusted"]
    assert set(command) >= {*REST, "next", url}
    assert "fetching" in add(brain, *command[3:]).output
    with brain.engine.connect() as conn:
        assert conn.execute(sa.text("SELECT count(*) FROM tree")).scalar_one() == 0


def test_a_path_of_this_host_is_trusted_as_before(brain: Brain) -> None:
    done = add(brain, "here", str(brain.repo), *REST[:3], "main", *REST[4:])
    assert done.exit_code == 0, done.output
    with brain.engine.connect() as conn:
        assert conn.execute(sa.text("SELECT trust FROM tree")).scalar_one() == "trusted"


def test_a_tree_states_the_smallest_change_of_interest_once(brain: Brain) -> None:
    words = ("here", str(brain.repo), *REST[:3], "main", *REST[4:], "--json")
    assert "must be 0.01 to 100 percent" in add(brain, *words, "--min-effect", "0").output
    done = add(brain, *words, "--min-effect", "0.5")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["min_effect_pct"] == 0.5
    assert add(brain, *words, "--min-effect", "0.5").exit_code == 0
    other = add(brain, *words, "--min-effect", "1")
    assert other.exit_code == 2 and "different min_effect_pct" in other.output


def test_a_tree_that_exists_keeps_its_level(brain: Brain) -> None:
    with brain.engine.begin() as conn:
        make.a_tree(conn, "old", url=URL)
        make.a_tree(conn, "stranger", url=URL, trust="untrusted")
    assert trust_of_new_tree(brain.lab.transaction, "old", URL, None) == "trusted"
    assert trust_of_new_tree(brain.lab.transaction, "stranger", URL, None) == "untrusted"
    assert trust_of_new_tree(brain.lab.transaction, "new", URL, "trusted") == "trusted"
    with pytest.raises(RequestError, match="--trust"):
        trust_of_new_tree(brain.lab.transaction, "new", URL, None)
