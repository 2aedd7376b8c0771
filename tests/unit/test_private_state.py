"""Other users of the host cannot enter the state directory of an embedded service."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from swingbot.app import embedded, postgres

OTHER_USER = 65534


def readable_by_others(file: Path) -> bool:
    """Whether a process of another user can read `file`; tried by a child if this one is root."""
    if os.geteuid() != 0:
        entered = all(parent.stat().st_mode & 0o001 for parent in file.parents)
        return entered and bool(file.stat().st_mode & 0o004)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgroups([])
            os.setresgid(OTHER_USER, OTHER_USER, OTHER_USER)
            os.setresuid(OTHER_USER, OTHER_USER, OTHER_USER)
            file.read_bytes()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A directory that everybody can walk to, as earlier versions left it."""
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_uid == os.geteuid():
            parent.chmod(parent.stat().st_mode | 0o011)
    place = tmp_path / "state"
    (place / "maildir").mkdir(parents=True)
    place.chmod(0o755)
    (place / "maildir" / "mail").write_text("an embargoed fix")
    return place


def test_a_state_directory_is_closed_for_other_users_when_the_service_starts(state: Path) -> None:
    assert readable_by_others(state / "maildir" / "mail")
    with embedded._lock(state):
        assert not readable_by_others(state / "maildir" / "mail")
        assert not readable_by_others(state / "lock")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has a user for the database server")
def test_the_database_server_of_root_can_still_enter(state: Path) -> None:
    with embedded._lock(state):
        postgres.prepare(state)
        assert state.stat().st_mode & 0o777 == 0o710
        assert not readable_by_others(state / "maildir" / "mail")
        child = os.fork()
        if child == 0:
            import pwd

            user, status = pwd.getpwnam(postgres.user() or ""), 1
            try:
                os.setgroups([])
                os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
                os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
                (postgres.data(state) / "PG_VERSION").read_text()
                status = 0
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
