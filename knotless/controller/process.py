"""One controller in its process: what it listens on, and the fabric that it serves or learns first.

:mod:`knotless.controller.composition` makes the parts of a controller,
:mod:`knotless.controller.desired` decides what to install, :mod:`knotless.controller.reconcile`
what to change in a switch, and :mod:`knotless.controller.switches` does it. Rules are never deleted
on exit: a fabric keeps forwarding without its controller.
"""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from knotless.base.printable import printable
from knotless.controller import config, runtime
from knotless.controller.composition import compose
from knotless.controller.openflow.connection import ConnectionEvents
from knotless.controller.openflow.endpoint import Endpoint
from knotless.controller.openflow.listener import GuardedConnections, Listener
from knotless.controller.openflow.session import SwitchEvents
from knotless.controller.openflow.stream import DeferredCounts, GuardedStream
from knotless.controller.openflow.tls import TlsFiles, server_context
from knotless.controller.probes.discovery import Discovery
from knotless.controller.probes.learner import Learner
from knotless.controller.rest.server import EarlyStatus
from knotless.controller.service import Service
from knotless.topologies import Fabric, KnotlessError
from knotless.topologies.formats.files import to_text

OPENFLOW_HOST = "127.0.0.1"
OPENFLOW_PORT = 6653
_LOG = logging.getLogger("knotless.controller")

Events = Callable[[], ConnectionEvents]
ServeConnection = Callable[[GuardedStream, list[bytes], Events], None]
"""Serves a connection until it ends, on which a switch has sent these messages."""


@dataclass(frozen=True)
class Options:
    """Options of the process; None: it is not given.

    ``config`` is the file of the configuration.
    """

    config: Path | None = None
    openflow_host: str = OPENFLOW_HOST
    openflow_port: int | None = None
    rest_host: str | None = None
    rest_port: int | None = None
    tls: TlsFiles | None = None


@dataclass(frozen=True)
class Addresses:
    """Addresses on which a controller listens, and its certificates (None: without TLS).

    ``openflow_port`` is None without TCP, ``socket`` without a Unix socket. ``number`` is that of
    this controller; None: it is alone.
    """

    openflow_host: str
    openflow_port: int | None
    socket: Path | None
    rest_host: str
    rest_port: int
    number: int | None
    tls: TlsFiles | None

    @classmethod
    def chosen(cls, options: Options, settings: config.Config, path: Path | None) -> Addresses:
        """Return what follows from options and from a configuration in this file.

        By default OpenFlow is served on the loopback address alone. If the configuration names a
        Unix socket, it is served on a TCP port only if an option names one that is not 0, or with
        TLS. Raises KnotlessError if none of several controllers has this address.
        """
        rest_host = options.rest_host or settings.rest.host
        rest_port = settings.rest.port if options.rest_port is None else options.rest_port
        number = config.own_number(settings, rest_host, rest_port)
        unix = config.openflow_socket_path(settings, path, number)
        port = OPENFLOW_PORT if options.openflow_port is None else options.openflow_port
        has_tcp = unix is None or options.tls is not None or bool(options.openflow_port)
        return cls(
            openflow_host=options.openflow_host,
            openflow_port=port if has_tcp else None,
            socket=unix,
            rest_host=rest_host,
            rest_port=rest_port,
            number=number,
            tls=options.tls,
        )

    def refuse_taken(self) -> None:
        """Raise KnotlessError if any of the addresses is in use."""
        if self.openflow_port is not None:
            runtime.refuse_taken_port(self.openflow_host, self.openflow_port, "OpenFlow")
        if self.socket is not None:
            runtime.refuse_taken_socket(self.socket, "OpenFlow")
        runtime.refuse_taken_port(self.rest_host, self.rest_port, "REST")


def serve_alone(stream: GuardedStream, greeting: list[bytes], events: Events) -> None:
    """Serve a connection of a switch that nobody else has to do with."""
    Endpoint(stream, events).serve(greeting)


class Controller:
    """A controller of the configured fabric; if that is to be learned, this comes first.

    ``path`` is the file of its configuration; None: the one that ``KNOTLESS_CONFIG`` names, else
    ``knotless.yaml``, else the defaults. ``read_options`` is given the configuration and returns
    the options, ``serve`` serves each connection. Raises KnotlessError if the configuration cannot
    be used, or an address is taken.

    Attributes
    ----------
    service : its side to operators, once there is a fabric.
    switches : its side to switches.
    serve_connection : serves a connected socket until it ends; called with it and its address.

    """

    service: Service
    switches: SwitchEvents
    _http: Service | EarlyStatus
    _learner: Learner

    def __init__(
        self,
        read_options: Callable[[config.Config], Options],
        serve: ServeConnection = serve_alone,
        path: Path | None = None,
    ) -> None:
        runtime.handle_signal(signal.SIGTERM, leave)
        self._serve = serve
        self._path = path or config.find(runtime.environment())
        self._settings = config.read(self._path) if self._path else config.Config()
        options = read_options(self._settings)
        self._addresses = Addresses.chosen(options, self._settings, self._path)
        self._addresses.refuse_taken()
        runtime.allow_open_files()
        self._counts = DeferredCounts()
        context = None if options.tls is None else server_context(options.tls)
        self.serve_connection = GuardedConnections(self._counts, self._serve_guarded, context)
        learned = config.to_learn(self._settings, self._path)
        self._warn_of_open_port()
        if learned is None:
            self._begin()
        else:
            self._learn(learned)

    def serve_forever(self) -> None:
        """Accept switches; does not return."""
        *others, last = self._listeners()
        for listener in others:
            runtime.spawn(listener.serve_forever)
        last.serve_forever()

    def close(self) -> None:
        """End what goes on; the switches keep their rules."""
        self.switches.close()
        self._http.close()

    # --- switches ----------------------------------------------------------------------------

    def _events(self) -> ConnectionEvents:
        return self.switches

    def _serve_guarded(self, stream: GuardedStream, greeting: list[bytes]) -> None:
        self._serve(stream, greeting, self._events)

    def _listeners(self) -> list[Listener]:
        addresses, listeners = self._addresses, list[Listener]()
        if addresses.openflow_port is not None:
            address = (addresses.openflow_host, addresses.openflow_port)
            listeners.append(Listener(address, self.serve_connection))
        if addresses.socket is not None:
            # Nobody else can connect to it: it needs no TLS.
            without_tls = GuardedConnections(self._counts, self._serve_guarded)
            listeners.append(Listener(addresses.socket, without_tls))
        return listeners

    def _warn_of_open_port(self) -> None:
        addresses = self._addresses
        if addresses.openflow_port is not None and addresses.tls is None:
            _LOG.warning(
                "whoever can connect to %s port %d can be a switch, also other users of this"
                " machine: use TLS, or openflow_socket",
                addresses.openflow_host,
                addresses.openflow_port,
            )

    # --- the fabric --------------------------------------------------------------------------

    def _begin(self) -> None:
        """Serve the fabric of the configuration; raises KnotlessError."""
        addresses = self._addresses
        service, self.switches = compose(self._path, self._settings, addresses.number)
        self._http = self.service = service
        self._counts.count_in(service.reporter.metrics)
        service.start(addresses.rest_host, addresses.rest_port)
        # What is here now stays. To look at it again takes the collector 8 ms with 100 switches.
        runtime.keep_heap()

    def _learn(self, file: Path) -> None:
        """Learn the fabric, write it to a file, and begin with it."""
        # There is nothing to be read again yet.
        runtime.handle_signal(signal.SIGHUP, signal.SIG_IGN)
        hosts = tuple(declared.host for declared in self._settings.hosts)
        discovery = Discovery(self._settings.learn_quiet_s, hosts)
        learner = Learner(discovery, file.stem, lambda fabric: self._learned(fabric, file))
        self.switches = self._learner = learner
        address = (self._addresses.rest_host, self._addresses.rest_port)
        self._http = EarlyStatus(address, self._settings.rest.names, learner.as_json)
        learner.start()

    def _learned(self, fabric: Fabric, file: Path) -> None:
        """Begin with a fabric that was learned."""
        try:
            runtime.keep(file, to_text(fabric))
            self._http.close()
            self._begin()
        except KnotlessError as error:
            report(error)
            runtime.exit_process(2)
        for connection in self._learner.connections:
            self.switches.connected(connection)


# --- the process -------------------------------------------------------------------------------


def report(error: KnotlessError) -> None:
    """Write why the controller ends, in one line."""
    sys.stderr.write(f"knotless: {printable(str(error))}\n")
    sys.stderr.flush()


def leave(_signal: int, _frame: object) -> None:
    """Exit at once: there is nothing to save, and the switches keep their rules.

    The signal may have interrupted a write to the log. Whoever flushed the log here could wait for
    a lock that only the interrupted code can release, or would get an error that is then logged:
    the signal would have no effect. Nothing is lost: each line is flushed when it is written.
    """
    runtime.exit_process(0)


def run(options: Options) -> None:
    """Serve a fabric until a signal ends the process, which is this controller's alone.

    What happens is logged to the standard error. Raises KnotlessError as :class:`Controller`.
    """
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    runtime.handle_signal(signal.SIGINT, leave)
    Controller(lambda _settings: options, path=options.config).serve_forever()
