"""The Ryu application: ``ryu-manager controller/app.py``, beside other applications of Ryu.

It is a thin adapter. Ryu serves the connections of switches: its datapath greets, keeps them alive,
and hands messages to all applications. Each message that the guard lets pass is given to the
:class:`knotless.controller.process.Controller` first; of those that answer its requests, and of its
probes, Ryu hears nothing. There are thousands a second, and Ryu's parsers take 100 us for a rule.
"""

from __future__ import annotations

import io
from contextlib import closing
from typing import Any, ClassVar, NoReturn

from ryu import cfg
from ryu.base import app_manager
from ryu.controller import controller as ryu_controller
from ryu.controller import ofp_event
from ryu.controller.handler import DEAD_DISPATCHER, set_ev_cls
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from knotless.base.printable import protect_logs
from knotless.controller.config import Config
from knotless.controller.openflow.connection import Connection
from knotless.controller.openflow.elements import WireError
from knotless.controller.openflow.stream import GuardedStream
from knotless.controller.openflow.tls import chosen_tls
from knotless.controller.process import (
    OPENFLOW_HOST,
    OPENFLOW_PORT,
    Controller,
    Events,
    Options,
    report,
)
from knotless.topologies import KnotlessError


class KnotlessController(app_manager.RyuApp):
    """Runs a controller on the connections of Ryu."""

    OFP_VERSIONS: ClassVar = [ofp.OFP_VERSION]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        protect_logs()
        try:
            self.controller = Controller(ryu_options, serve_with_ryu)
        except KnotlessError as error:
            _fail(error)
        # Ryu's OpenFlow handler starts after all applications, and then has this one accept. It may
        # also connect to switches itself.
        ryu_controller.StreamServer = lambda *_address, **_tls: self.controller
        ryu_controller.datapath_connection_factory = self.controller.serve_connection

    @set_ev_cls(ofp_event.EventOFPStateChange, DEAD_DISPATCHER)
    def on_end(self, _event: Any) -> None:
        """Do nothing: Ryu loads its OpenFlow handler for applications that handle its events."""

    def close(self) -> None:
        """End what goes on; Ryu calls this after Ctrl-C, when it delivers no more events."""
        self.controller.close()


def _fail(error: KnotlessError) -> NoReturn:
    report(error)
    raise SystemExit(2) from error


def ryu_options(settings: Config) -> Options:
    """Return what Ryu's options say; raises KnotlessError if they contradict each other.

    Other than by default in Ryu, OpenFlow is served on the loopback address alone, and dead
    switches are detected. Ryu's own web server, which other applications in the same process may
    use, keeps its port.
    """
    conf = cfg.CONF
    conf.set_default("ofp_listen_host", OPENFLOW_HOST)
    conf.set_default("ofp_tcp_listen_port", OPENFLOW_PORT)
    conf.set_default("ofp_ssl_listen_port", OPENFLOW_PORT)
    conf.set_default("wsapi_host", settings.rest.host)
    conf.set_default("echo_request_interval", 5.0)
    conf.set_default("maximum_unreplied_echo_requests", 3)
    files = chosen_tls(
        {
            "--ctl-privkey": conf.ctl_privkey,
            "--ctl-cert": conf.ctl_cert,
            "--ca-certs": conf.ca_certs,
        }
    )
    return Options(
        openflow_host=conf.ofp_listen_host,
        openflow_port=_by_user("ofp_ssl_listen_port" if files else "ofp_tcp_listen_port"),
        rest_host=conf.wsapi_host,
        rest_port=_by_user("wsapi_port"),
        tls=files,
    )


def _by_user(option: str) -> int | None:
    """Return an option if the user has given it."""
    conf = cfg.CONF
    given = conf.get_location(option).location.is_user_controlled
    return int(conf[option]) if given else None


class RyuConnection(Connection):
    """A connection that Ryu's datapath serves; see :class:`Connection`."""

    def __init__(self, stream: GuardedStream, events: Events) -> None:
        super().__init__(stream, events)
        self._datapath: Any = None

    def serve(self, greeting: list[bytes]) -> None:
        """Have Ryu serve the switch, which has sent these messages, until the connection ends."""
        datapath = ryu_controller.Datapath(RyuSocket(self, greeting), self.stream.address)
        try:
            with closing(datapath) as self._datapath:
                datapath.serve()
        finally:
            self._ended()

    def send(self, data: bytes) -> bool:
        """See :class:`Connection`."""
        return bool(self._datapath.send(data))

    @property
    def waiting(self) -> int:
        """See :class:`Connection`."""
        queue = self._datapath.send_q  # None once the connection is over
        return 0 if queue is None else int(queue.qsize())

    def next_transaction(self) -> int:
        """See :class:`Connection`; Ryu gives them to messages only: to any."""
        return int(self._datapath.set_xid(parser.OFPHello(self._datapath)))

    def close(self) -> None:
        """See :class:`Connection`."""
        self.is_open = False
        self._datapath.close()


class RyuSocket:
    """The socket of Ryu's datapath, on which nothing arrives that concerns the controller alone."""

    def __init__(self, connection: RyuConnection, greeting: list[bytes]) -> None:
        self._connection, self._stream = connection, connection.stream
        self._unread = io.BytesIO(b"".join(greeting))

    def recv(self, size: int) -> bytes:
        """Return at most ``size`` bytes of whole, checked messages; none at the end.

        Raises TimeoutError if none has come for some time that is for Ryu.
        """
        if part := self._unread.read(size):
            return part
        try:
            messages = self._stream.receive()
            if messages is None:
                return b""
            kept = [message for message in messages if not self._connection.take(message)]
        except WireError as reason:
            self._stream.refuse(str(reason))
            return b""
        self._unread = io.BytesIO(b"".join(kept))
        if part := self._unread.read(size):
            return part
        # Ryu must see at times whether it is to end the connection.
        raise TimeoutError

    def sendall(self, data: bytes) -> None:
        """Send ``data``."""
        self._stream.sendall(data)

    def setsockopt(self, *_option: object) -> None:
        """Ignore an option that the stream has set."""

    def settimeout(self, _seconds: float | None) -> None:
        """Ignore how long to wait: the stream does not wait longer."""

    def shutdown(self, _how: int) -> None:
        """End the connection, so that Ryu sees its end at once."""
        self._stream.shut_down()

    def close(self) -> None:
        """Close the connection, once it is served no more."""
        self._stream.shut_down()


def serve_with_ryu(stream: GuardedStream, greeting: list[bytes], events: Events) -> None:
    """Have Ryu serve a connection of a switch."""
    RyuConnection(stream, events).serve(greeting)
