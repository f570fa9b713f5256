"""Opening channels: keepalive, TLS, client-side round robin, deadlines and retries by gRPC's own service config."""

import ipaddress
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import grpc

from twinspark_rpc.keepalive import keepalive_options
from twinspark_rpc.settings import ChannelSettings
from twinspark_rpc.transport_security import channel_credentials


@dataclass(frozen=True, slots=True)
class MethodPolicy:
    """Deadline and retries of one method, or of every method of a service (`method` empty).

    Only calls that are safe to repeat may have more than one attempt; they are repeated on UNAVAILABLE. A call's own
    `timeout=` may shorten the deadline. No deadline: None.
    """

    service: str
    method: str = ""
    timeout_seconds: float | None = None
    max_attempts: int = 1


def open_channel(
    addresses: str,
    settings: ChannelSettings,
    policies: Sequence[MethodPolicy] = (),
    *,
    max_backoff_seconds: float = 1.0,
) -> grpc.aio.Channel:
    """A channel to the replicas of one service. It connects when first used and reconnects by itself.

    `addresses`: `host:port`, or several numeric ones separated by commas. A name with several address records counts
    as several replicas; calls go to the connected ones in turn. `max_backoff_seconds`: longest wait between two
    attempts to connect.
    """
    options: list[tuple[str, Any]] = [
        *keepalive_options(settings.keepalive_timeout_seconds),
        ("grpc.max_receive_message_length", settings.max_message_bytes),
        ("grpc.max_send_message_length", settings.max_message_bytes),
        ("grpc.service_config", service_config(policies)),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", int(max_backoff_seconds * 1000)),
        ("grpc.enable_http_proxy", 0),  # inner services are never behind the machine's web proxy
        ("grpc.use_local_subchannel_pool", 1),  # a channel's connections end with it
    ]
    credentials = channel_credentials(settings, settings.tls_server_ca_file)
    target = build_target(addresses)
    if credentials is None:
        return grpc.aio.insecure_channel(target, options)
    return grpc.aio.secure_channel(target, credentials, options)


def build_target(addresses: str) -> str:
    """The gRPC target of a list of addresses. Raises ValueError if it mixes kinds that gRPC cannot resolve together."""
    entries = [entry.strip().replace("localhost:", "127.0.0.1:") for entry in addresses.split(",") if entry.strip()]
    if not entries:
        raise ValueError("no address: give host:port")
    for entry in entries:
        host, separator, port = entry.rpartition(":")
        if not separator or not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise ValueError(f"address {entry!r} is not host:port")
    families = {_family(entry) for entry in entries}
    if families == {4} or families == {6}:
        return f"ipv{families.pop()}:{','.join(entries)}"
    if len(entries) == 1:
        return f"dns:///{entries[0]}"
    raise ValueError(f"addresses {addresses!r}: several must all be numeric; or give one name with several records")


def service_config(policies: Sequence[MethodPolicy]) -> str:
    """gRPC's service config, as JSON."""
    config: dict[str, Any] = {"loadBalancingConfig": [{"round_robin": {}}]}
    config["methodConfig"] = [_method_config(policy) for policy in policies]
    return json.dumps(config)


def _method_config(policy: MethodPolicy) -> dict[str, Any]:
    name = {"service": policy.service, **({"method": policy.method} if policy.method else {})}
    config: dict[str, Any] = {"name": [name]}
    if policy.timeout_seconds is not None:
        config["timeout"] = f"{policy.timeout_seconds:.3f}s"
    if policy.max_attempts > 1:
        config["retryPolicy"] = {
            "maxAttempts": policy.max_attempts,
            "initialBackoff": "0.05s",
            "maxBackoff": "1s",
            "backoffMultiplier": 2,
            "retryableStatusCodes": ["UNAVAILABLE"],
        }
    return config


def _family(address: str) -> int:
    """4 or 6 for a numeric address, 0 for a name."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).version
    except ValueError:
        return 0
