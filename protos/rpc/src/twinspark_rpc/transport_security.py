"""TLS and mutual TLS of listeners and channels, from PEM files."""

from pathlib import Path
from typing import Protocol

import grpc


class TlsIdentity(Protocol):
    """The PEM files with which a process proves who it is; both or none."""

    @property
    def tls_certificate_file(self) -> Path | None: ...
    @property
    def tls_key_file(self) -> Path | None: ...


def server_credentials(identity: TlsIdentity, client_ca_file: Path | None) -> grpc.ServerCredentials | None:
    """Credentials of a listener, None for plain text. With `client_ca_file`, callers must show its certificate."""
    if identity.tls_certificate_file is None or identity.tls_key_file is None:
        return None
    pair = (identity.tls_key_file.read_bytes(), identity.tls_certificate_file.read_bytes())
    authority = client_ca_file.read_bytes() if client_ca_file else None
    return grpc.ssl_server_credentials([pair], authority, require_client_auth=authority is not None)


def channel_credentials(identity: TlsIdentity, server_ca_file: Path | None) -> grpc.ChannelCredentials | None:
    """Credentials of a channel, None for plain text. The identity, where given, is shown to servers that ask for it."""
    if server_ca_file is None:
        return None
    key = identity.tls_key_file.read_bytes() if identity.tls_key_file else None
    chain = identity.tls_certificate_file.read_bytes() if identity.tls_certificate_file else None
    return grpc.ssl_channel_credentials(server_ca_file.read_bytes(), key, chain)
