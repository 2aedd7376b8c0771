"""Which waiting connections are closed when there are too many."""

from __future__ import annotations

from swingbot.web import limits
from swingbot.web.http.waiting import GRACE_SECONDS, WaitingConnections


class Connection:
    aborted = False

    def abort(self) -> None:
        self.aborted = True


def waiting_for(waiting: WaitingConnections, client: str, count: int) -> list[Connection]:
    connections = [Connection() for _ in range(count)]
    for at, connection in enumerate(connections):
        waiting.add(client, connection, at / 1000)
    return connections


def test_the_oldest_connections_of_a_client_make_room() -> None:
    waiting = WaitingConnections(most=200)
    crowd, other = (
        waiting_for(waiting, "a", limits.CLIENT_REQUESTS + 3),
        waiting_for(waiting, "b", 1),
    )
    assert waiting.close_surplus(36, now=0.1) == 0, "heads may still arrive"
    assert waiting.close_surplus(36, now=1 + GRACE_SECONDS) == 3
    assert [one.aborted for one in crowd] == [True] * 3 + [False] * limits.CLIENT_REQUESTS
    assert not other[0].aborted and not waiting.crowded(33)


def test_beyond_the_limit_of_all_the_largest_crowd_is_closed_at_once() -> None:
    waiting = WaitingConnections(most=10)
    crowd, other = waiting_for(waiting, "a", 12), waiting_for(waiting, "b", 2)
    assert waiting.crowded(14) and waiting.close_surplus(14, now=0.012) == 4
    assert sum(one.aborted for one in crowd) == 4 and crowd[3].aborted and not crowd[4].aborted
    assert not any(one.aborted for one in other)


def test_requests_in_progress_are_never_closed() -> None:
    waiting = WaitingConnections(most=10)
    (connection,) = waiting_for(waiting, "a", 1)
    waiting.remove("a", connection)
    assert waiting.close_surplus(500, now=9.0) == 0 and not connection.aborted


def test_the_clients_of_a_proxy_share_no_limit() -> None:
    waiting = WaitingConnections(most=200, shared=lambda client: client == "10.0.0.1")
    crowd = waiting_for(waiting, "10.0.0.1", 100)
    assert waiting.close_surplus(100, now=9.0) == 0 and not any(one.aborted for one in crowd)
