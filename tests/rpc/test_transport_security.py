"""TLS and mutual TLS, with certificates made for the test."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import grpc
import pytest
from prometheus_client import CollectorRegistry

from support.echo_service import ECHO_SERVICE, EchoServicer, add_echo_servicer, echo
from support.waiting import PATIENCE_SECONDS
from twinspark_rpc import ChannelSettings, ListenSettings, RpcServer, open_channel

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the openssl program")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that is its own CA, and its key."""
    folder = tmp_path_factory.mktemp("certificates")
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    return certificate, key


async def call(listen: ListenSettings, settings: ChannelSettings) -> str:
    server = RpcServer("echo", listen, CollectorRegistry())
    server.add(add_echo_servicer, EchoServicer(), ECHO_SERVICE)
    await server.start()
    try:
        async with open_channel(f"127.0.0.1:{server.port}", settings) as channel:
            return str(await echo(channel)("hello", timeout=PATIENCE_SECONDS))
    finally:
        await server.stop()


async def test_tls_with_the_servers_ca(certificate: tuple[Path, Path]) -> None:
    listen = ListenSettings(tls_certificate_file=certificate[0], tls_key_file=certificate[1], drain_seconds=0)
    assert await call(listen, ChannelSettings(tls_server_ca_file=certificate[0])) == "hello"


async def test_a_plain_caller_of_a_tls_server_is_refused(certificate: tuple[Path, Path]) -> None:
    listen = ListenSettings(tls_certificate_file=certificate[0], tls_key_file=certificate[1], drain_seconds=0)
    with pytest.raises(grpc.aio.AioRpcError, match="UNAVAILABLE"):
        await call(listen, ChannelSettings())


async def test_mutual_tls_refuses_a_caller_without_a_certificate(certificate: tuple[Path, Path]) -> None:
    identity: dict[str, Any] = {"tls_certificate_file": certificate[0], "tls_key_file": certificate[1]}
    listen = ListenSettings(**identity, tls_client_ca_file=certificate[0], drain_seconds=0)
    assert await call(listen, ChannelSettings(**identity, tls_server_ca_file=certificate[0])) == "hello"
    with pytest.raises(grpc.aio.AioRpcError, match="UNAVAILABLE"):
        await call(listen, ChannelSettings(tls_server_ca_file=certificate[0]))
