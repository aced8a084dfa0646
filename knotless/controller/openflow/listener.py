"""The OpenFlow listener: a guard on each connection, and TLS with all switches.

:func:`install_listener` has Ryu's own OpenFlow handler start this listener in place of its own. Ryu
itself is not changed: its datapath reads from a socket that hands on only what the guard lets pass.
"""

from __future__ import annotations

import io
import logging
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import ryu.base.app_manager  # noqa: F401 - before ryu.controller.controller: they import each other
from ryu.controller import controller as ryu_controller

from knotless.controller import runtime
from knotless.controller.openflow import messages
from knotless.controller.openflow.elements import WireError
from knotless.controller.openflow.guard import Guard, Limits
from knotless.topologies import KnotlessError

MAX_CONNECTIONS = 4096
"""Connections at once: 1,000 switches, each twice while it reconnects, and some more."""
LOG_INTERVAL_S = 10.0
"""At most one line about hostile switches is logged in this time."""
BACKLOG = 1024
"""Connections that the kernel holds until they are accepted: all switches may come at once."""
ACCEPT_PAUSE_S = 0.1
ACCEPT_GAP_S = 0.001
"""Between two connections others are served. Those that came one after the other also time out one
after the other."""
GREETING_S = Limits.handshake_s + 0.01
"""Time after which a connection that says nothing is looked at: it then has exceeded the guard's
limit. Each look would leave exceptions and frames to the garbage collector."""
_CHUNK_BYTES = 1 << 16
_LOG = logging.getLogger("knotless.openflow")


class LimitedLog:
    """Log lines about hostile switches, few enough that nobody can fill a disk with them."""

    def __init__(self) -> None:
        self._next_s = 0.0
        self._skipped = 0

    def warn(self, address: object, text: str) -> None:
        """Log a line about a connection, or count it if one was logged just before."""
        now_s = runtime.now_s()
        if now_s < self._next_s:
            self._skipped += 1
            return
        more = f" (and {self._skipped} such lines before)" if self._skipped else ""
        _LOG.warning("the connection from %s %s%s", address, text, more)
        self._next_s, self._skipped = now_s + LOG_INTERVAL_S, 0


class Counter(Protocol):
    """A counter of events."""

    def inc(self, amount: float = 1) -> None:
        """Count it ``amount`` times more."""


TakeProbe = Callable[[int, bytes], None]
"""Called with the dpid of a switch and a packet-in; returns at once."""


class Counts(Protocol):
    """The counters of what is kept from Ryu."""

    @property
    def dropped(self) -> Counter:
        """Messages above the allowed rate."""

    @property
    def closed(self) -> Counter:
        """Connections that were closed because of what they sent, or refused."""


class Uncounted:
    """A counter that nobody reads."""

    def inc(self, amount: float = 1) -> None:
        """Count nothing."""


@dataclass
class DeferredCounts:
    """Counters that are known only later: nothing is counted before."""

    dropped: Counter = field(default_factory=Uncounted)
    closed: Counter = field(default_factory=Uncounted)

    def count_in(self, counts: Counts) -> None:
        """Count here from now on."""
        self.dropped, self.closed = counts.dropped, counts.closed


class GuardedSocket:
    """A connected socket as Ryu's datapath uses it; it ends where the guard refuses something."""

    def __init__(
        self,
        connection: Any,
        address: object,
        log: LimitedLog,
        counts: Counts,
        take_probe: TakeProbe,
    ) -> None:
        self._connection, self._address, self._log = connection, address, log
        self._counts, self._take_probe = counts, take_probe
        self._guard = Guard(Limits(), runtime.now_s())
        self._passed = io.BytesIO()

    def recv(self, size: int) -> bytes:
        """Return at most ``size`` bytes of whole, checked messages; none at the end.

        Raises TimeoutError if none has come for some time, or only probes.
        """
        part = self._passed.read(size)
        try:
            while not part:
                try:
                    data = self._connection.recv(_CHUNK_BYTES)
                except TimeoutError:
                    self._guard.check_handshake(runtime.now_s())
                    raise
                except ssl.SSLError as error:
                    # Ryu takes it for a timeout, and would read again for ever.
                    raise WireError(f"TLS ended with {error.reason or error}") from error
                if not data:
                    return b""
                dropped = self._guard.dropped
                self._passed = io.BytesIO(self._guard.received(data, runtime.now_s()))
                self._counts.dropped.inc(self._guard.dropped - dropped)
                took = self._take_probes()
                part = self._passed.read(size)
                # A switch that sends without pause must not block the others.
                runtime.sleep(0)
                if took and not part:
                    # Ryu must see at times whether it is to end the connection.
                    raise TimeoutError
        except WireError as reason:
            self._counts.closed.inc()
            self._log.warn(self._address, f"is closed: {reason}")
            return b""
        return part

    @property
    def dropped(self) -> int:
        """Messages beyond their rate that the guard has dropped."""
        return self._guard.dropped

    def is_greeted(self) -> bool:
        """Wait until the switch has said something, which :meth:`recv` returns; False: it ended."""
        self._connection.settimeout(GREETING_S)
        while True:
            try:
                first = self.recv(1)
            except TimeoutError:
                continue
            self._passed.seek(0)
            return bool(first)

    def _take_probes(self) -> bool:
        """Pass on what Ryu does not get; return whether there was anything."""
        taken, self._guard.probes = self._guard.probes, []
        if self._guard.dpid is not None:
            for packet_in in taken:
                self._take_probe(self._guard.dpid, packet_in)
        return bool(taken)

    def sendall(self, data: bytes) -> None:
        """Send ``data``, which may ask the switch for answers."""
        self._guard.sent(data)
        self._connection.sendall(data)

    def setsockopt(self, *option: Any) -> None:
        """Set an option of the connection; Ryu's only one is of TCP, which a Unix socket lacks."""
        with suppress(OSError):
            self._connection.setsockopt(*option)

    def settimeout(self, seconds: float | None) -> None:
        """Set how long :meth:`recv` and :meth:`sendall` wait."""
        self._connection.settimeout(seconds)

    def shutdown(self, how: int) -> None:
        """Shut the connection down."""
        self._connection.shutdown(how)

    def close(self) -> None:
        """Close the connection; log what was dropped."""
        if self._guard.dropped:
            text = f"sent {self._guard.dropped} packets or echo requests above its rate: dropped"
            self._log.warn(self._address, text)
        self._connection.close()


class GuardedConnections:
    """Serves each connection by Ryu's datapath behind a guard.

    With ``context`` only connections in TLS whose certificate it accepts are served.
    """

    def __init__(self, counts: Counts, take_probe: TakeProbe, context: Any = None) -> None:
        self._counts, self._take_probe = counts, take_probe
        self._context = context
        self._log = LimitedLog()
        self._open = 0

    def __call__(self, connection: Any, address: object) -> None:
        """Serve one connection until it ends."""
        if self._open >= MAX_CONNECTIONS:
            self._counts.closed.inc()
            self._log.warn(address, f"is closed: there are {self._open} connections already")
            connection.close()
            return
        self._open += 1
        try:
            if self._context is not None:
                connection = handshake(connection, self._context)
            guarded = GuardedSocket(connection, address, self._log, self._counts, self._take_probe)
            # Both sides greet at once. Ryu's datapath has three green threads and a hundred objects
            # that only the garbage collector frees: who says nothing gets none.
            if guarded.is_greeted():
                _SERVE(guarded, address)
            else:
                guarded.close()
        except HandshakeError as reason:
            self._counts.closed.inc()
            self._log.warn(address, f"is refused: {reason}")
        except OSError:
            # It was gone before Ryu could use it.
            connection.close()
        finally:
            self._open -= 1


class Listener:
    """Listens as Ryu's ``StreamServer`` does, and goes on when the system refuses a connection."""

    def __init__(self, address: tuple[str, int] | Path, serve: Any) -> None:
        self._server = runtime.listen(address, BACKLOG)
        self._address = address
        self._serve = serve
        self._log = LimitedLog()

    def close(self) -> None:
        """Accept no more connections, once nobody serves them; those that are open go on."""
        self._server.close()

    def serve_forever(self) -> None:
        """Serve each connection in a green thread of its own."""
        while True:
            try:
                connection, address = self._server.accept()
            except OSError as error:
                # Too many open files, or the connection is gone already.
                self._log.warn("a switch", f"cannot be accepted: {error.strerror or error}")
                runtime.sleep(ACCEPT_PAUSE_S)
                continue
            # The other end of a Unix socket has no address.
            runtime.spawn(self._serve, connection, address or self._address)
            runtime.sleep(ACCEPT_GAP_S)


_SERVE = ryu_controller.datapath_connection_factory
"""Ryu's own, before :func:`install_listener` replaces it."""


def install_listener(
    files: TlsFiles | None,
    counts: Counts,
    take_probe: TakeProbe,
    unix: Path | None = None,
    *,
    tcp: bool = True,
) -> None:
    """Have Ryu's OpenFlow handler, which starts after all applications, use this listener.

    ``take_probe`` is given the packet-ins of rules of probes, which do not reach Ryu. With
    ``files`` TCP is served with TLS only. ``unix`` is a Unix socket that is served, instead of TCP
    or, with ``tcp``, as well. Raises KnotlessError if the files cannot be used.
    """
    context = None if files is None else server_context(files)
    serve = ryu_controller.datapath_connection_factory = GuardedConnections(
        counts, take_probe, context
    )

    def listener(address: tuple[str, int], _serve: object, **_ryus_tls: object) -> Listener:
        if unix is None:
            return Listener(address, serve)
        if tcp:
            runtime.spawn(Listener(address, serve).serve_forever)
        return Listener(unix, GuardedConnections(counts, take_probe))

    ryu_controller.StreamServer = listener
    messages.install()


# --- TLS --------------------------------------------------------------------------------------

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


def chosen_tls(key: str | None, certificate: str | None, authority: str | None) -> TlsFiles | None:
    """Return the files of ``--ctl-privkey``, ``--ctl-cert`` and ``--ca-certs``; None without TLS.

    Raises KnotlessError if only some of them are given: without a CA anybody could be a switch.
    """
    given = {"--ctl-privkey": key, "--ctl-cert": certificate, "--ca-certs": authority}
    if not any(given.values()):
        return None
    if key and certificate and authority:
        return TlsFiles(key, certificate, authority)
    missing = " and ".join(option for option, value in given.items() if not value)
    raise KnotlessError(
        f"TLS needs a key, a certificate and the CA of the switches: give {missing} as well"
    )


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
