"""Buildbot's own pages: who may read them, and who may give commands there. One signs in with any name and a swingbot token as the password."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any, Final

from buildbot.plugins import util
from buildbot.www.auth import CustomAuth
from buildbot.www.authz.roles import RolesFromBase
from twisted.cred.error import UnauthorizedLogin
from twisted.internet import threads

from swingbot.adapters.buildbot.deferred import deferred

OPERATOR: Final = "operator"
# A session outlives its token by so much at most: Buildbot looks at the token when one signs in, and never again.
SESSION: Final = datetime.timedelta(hours=8)

# token -> whose it is, None unless an operator's; may block
NameOfOperator = Callable[[str], "str | None"]


class OperatorAuth(CustomAuth):  # type: ignore[misc]  # Buildbot is not typed
    """Lets in who shows an operator's token."""

    def __init__(self, name_of: NameOfOperator) -> None:
        super().__init__()
        self._name_of = name_of

    @deferred
    async def requestAvatarId(self, cred: Any) -> bytes:
        name = await threads.deferToThread(self._name_of, cred.password.decode(errors="replace"))
        if name is None:
            raise UnauthorizedLogin()
        return name.encode()


class RolesOfThoseSignedIn(RolesFromBase):  # type: ignore[misc]
    """Nobody but operators can sign in, so whoever has is one."""

    def getRolesFromUser(self, userDetails: dict[str, Any]) -> list[str]:
        return (
            []
            if userDetails.get("anonymous", True) is True and "username" not in userDetails
            else [OPERATOR]
        )


def www(port: str, *, pages: str, control: str, name_of: NameOfOperator) -> dict[str, Any]:
    """Buildbot's `c['www']`: `pages` is who may read (open or operator), `control` who may start, stop and force (nobody or operator)."""
    rules = [util.AnyControlEndpointMatcher(role=OPERATOR if control == OPERATOR else "nobody")]
    if pages == OPERATOR:
        rules.append(util.AnyEndpointMatcher(role=OPERATOR))
    signing_in = OPERATOR in (pages, control)
    return {
        "port": port,
        "plugins": {"waterfall_view": {}, "console_view": {}, "grid_view": {}},
        "authz": util.Authz(
            allowRules=rules, roleMatchers=[RolesOfThoseSignedIn()] if signing_in else []
        ),
        "allowed_origins": [],
        "avatar_methods": [],  # the default asks a server of strangers
        "cookie_expiration_time": SESSION,
    } | ({"auth": OperatorAuth(name_of)} if signing_in else {})
