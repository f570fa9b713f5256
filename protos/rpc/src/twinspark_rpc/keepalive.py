"""Keepalive of connections: one timeout gives both ends of gRPC's pings."""

# The share of the timeout between two pings; the rest is the wait for the answer.
_PING_SHARE = 0.25


def keepalive_options(timeout_seconds: float) -> list[tuple[str, int]]:
    """Options of a channel or server that give up a silent connection after `timeout_seconds`, calls or no calls.

    A stopped process keeps its sockets open and its kernel acknowledges data: only unanswered pings tell.
    """
    total = int(timeout_seconds * 1000)
    interval = max(int(total * _PING_SHARE), 50)
    answer = max(total - interval, 50)
    return [
        ("grpc.keepalive_time_ms", interval),
        ("grpc.keepalive_timeout_ms", answer),
        # Without it an unanswered ping is waited for a minute, whatever the keepalive timeout says.
        ("grpc.http2.ping_timeout_ms", answer),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        # The other end's pings are welcome: its timeout may be shorter than ours.
        ("grpc.http2.max_ping_strikes", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", 50),
    ]
