"""Which waiting connections are closed when there are too many."""

from __future__ import annotations

from swingbot.web.http.waiting import WaitingConnections


class Connection:
    aborted = False

    def abort(self) -> None:
        self.aborted = True


def waiting_for(waiting: WaitingConnections, client: str, count: int) -> list[Connection]:
    connections = [Connection() for _ in range(count)]
    for connection in connections:
        waiting.add(client, connection)
    return connections


def test_the_oldest_connections_of_the_largest_crowd_make_room() -> None:
    waiting = WaitingConnections(most=10)
    crowd, other = waiting_for(waiting, "a", 12), waiting_for(waiting, "b", 2)
    assert waiting.crowded(14) and waiting.close_surplus(14) == 4
    assert [one.aborted for one in crowd] == [True] * 4 + [False] * 8
    assert not any(one.aborted for one in other) and not waiting.crowded(10)


def test_no_connection_is_closed_while_there_is_room() -> None:
    waiting = WaitingConnections(most=200)
    crowd = waiting_for(waiting, "a", 200)
    assert waiting.close_surplus(200) == 0 and not any(one.aborted for one in crowd)


def test_requests_in_progress_are_never_closed() -> None:
    waiting = WaitingConnections(most=10)
    (connection,) = waiting_for(waiting, "a", 1)
    waiting.remove("a", connection)
    assert waiting.close_surplus(500) == 0 and not connection.aborted
