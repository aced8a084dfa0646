"""TLS with all switches: the files that are needed, and the handshake of one connection."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from knotless.base.errors import KnotlessError
from knotless.controller import runtime

HANDSHAKE_S = 10.0
"""Time for a handshake, from the connection on."""


class HandshakeError(Exception):
    """A switch is refused; the text says why."""


@dataclass(frozen=True)
class TlsFiles:
    """Paths of PEM files: our private key, our certificate, and the CA of the switches."""

    key: str
    certificate: str
    authority: str


def chosen_tls(given: Mapping[str, str | None]) -> TlsFiles | None:
    """Return the files of three options: key, certificate and CA, in this order; None without TLS.

    Raises KnotlessError if only some of them are given: without a CA anybody could be a switch.
    """
    if not any(given.values()):
        return None
    if missing := " and ".join(option for option, file in given.items() if not file):
        raise KnotlessError(
            f"TLS needs a key, a certificate and the CA of the switches: give {missing} as well"
        )
    return TlsFiles(*map(str, given.values()))


def server_context(files: TlsFiles) -> Any:
    """Return the context in which all connections from switches are accepted.

    Raises KnotlessError, which names the file that cannot be used.
    """
    context = runtime.tls_server()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # A read never has to write, nor the other way round, and a client cannot keep us busy.
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.verify_mode = ssl.CERT_REQUIRED
    for path in (files.key, files.certificate, files.authority):
        if not Path(path).is_file():
            raise KnotlessError(f"{path}: no such file; TLS needs key, certificate and CA")
    try:
        context.load_cert_chain(files.certificate, files.key)
    except (OSError, ValueError) as error:
        raise KnotlessError(
            f"{files.certificate}: no certificate in PEM of the key in {files.key} ({error})"
        ) from error
    try:
        context.load_verify_locations(files.authority)
    except (OSError, ValueError) as error:
        raise KnotlessError(f"{files.authority}: no CA certificates in PEM ({error})") from error
    return context


def handshake(connection: Any, context: Any) -> Any:
    """Return ``connection`` in TLS; a connection that is refused is closed.

    Raises
    ------
    HandshakeError
        There is no certificate of our CA, no TLS, or no end of the handshake in time.
    OSError
        The connection ended.

    """
    secured = context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
    try:
        with runtime.time_limit(HANDSHAKE_S):
            secured.do_handshake()
    except runtime.TimeLimitError:
        secured.close()
        raise HandshakeError(f"no TLS handshake within {HANDSHAKE_S:g} s") from None
    except ssl.SSLError as error:
        secured.close()
        if isinstance(error, ssl.SSLEOFError):
            # It said nothing, perhaps to see whether anybody listens.
            raise ConnectionError("the connection ended") from error
        raise HandshakeError(_reason(error)) from error
    except BaseException:
        secured.close()
        raise
    return secured


def _reason(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid: {error.verify_message}"
    if error.reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
        return "it has no certificate"
    return f"no TLS handshake: {str(error.reason).replace('_', ' ').lower()}"
