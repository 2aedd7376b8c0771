"""Access to Buildbot's own pages: who may read them, and who may control builds there.

Users sign in with any name and a swingbot token as the password.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any, Final

from buildbot.plugins import util
from buildbot.www.auth import CustomAuth
from buildbot.www.authz.roles import RolesFromBase
from twisted.cred.error import UnauthorizedLogin
from twisted.internet import threads

from swingbot.adapters.buildbot import rest, same_origin
from swingbot.adapters.buildbot.deferred import deferred

OPERATOR: Final = "operator"
# Maximum lifetime of a session after its token is revoked: Buildbot checks the token only when a
# user signs in.
SESSION: Final = datetime.timedelta(hours=8)

# token -> its owner, None unless an operator's; may block
NameOfOperator = Callable[[str], "str | None"]


class OperatorAuth(CustomAuth):  # type: ignore[misc]  # Buildbot is not typed
    """Accepts users who present an operator's token."""

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
    """Gives every signed-in user the role of an operator, because only operators can sign in."""

    def getRolesFromUser(self, userDetails: dict[str, Any]) -> list[str]:
        return (
            []
            if userDetails.get("anonymous", True) is True and "username" not in userDetails
            else [OPERATOR]
        )


def www(
    port: str, *, url: str, pages: str, control: str, name_of: NameOfOperator
) -> dict[str, Any]:
    """Return Buildbot's `c['www']`: `pages` says who may read (open or operator), `control` who may
    start, stop and force builds (nobody or operator). `url` is the address of the pages.
    """
    same_origin.protect(url)
    rest.write_from_the_reactor()
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
        "allowed_origins": [same_origin.origin_of(url)],  # browsers name it with each command
        "avatar_methods": [],  # the default queries a third-party server
        "cookie_expiration_time": SESSION,
    } | ({"auth": OperatorAuth(name_of)} if signing_in else {})
