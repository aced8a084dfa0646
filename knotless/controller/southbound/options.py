"""Ryu's command-line options: our defaults, and what they ask for."""

from __future__ import annotations

import resource
from dataclasses import dataclass

from ryu import cfg

from knotless.base.ports import free_port
from knotless.controller.southbound import tls
from knotless.topologies import KnotlessError

OPENFLOW_PORT = 6653


@dataclass(frozen=True)
class Options:
    """Where the controller listens, and by which certificates (None: without TLS)."""

    openflow_host: str
    openflow_port: int
    rest_host: str
    rest_port: int
    tls: tls.TlsFiles | None


def read(rest_host: str, rest_port: int) -> Options:
    """Return Ryu's options, with these defaults for REST.

    By default OpenFlow is served on the loopback address alone (Ryu's default is every address),
    and dead switches are detected. Ryu's own web server, which other applications in the same
    process may use, keeps its port. Raises KnotlessError for options that contradict each other.
    """
    conf = cfg.CONF
    conf.set_default("ofp_listen_host", "127.0.0.1")
    conf.set_default("ofp_tcp_listen_port", OPENFLOW_PORT)
    conf.set_default("ofp_ssl_listen_port", OPENFLOW_PORT)
    conf.set_default("wsapi_host", rest_host)
    conf.set_default("echo_request_interval", 5.0)
    conf.set_default("maximum_unreplied_echo_requests", 3)
    files = tls.chosen(conf.ctl_privkey, conf.ctl_cert, conf.ca_certs)
    port = conf.ofp_ssl_listen_port if files else conf.ofp_tcp_listen_port
    if conf.get_location("wsapi_port").location.is_user_controlled:
        rest_port = conf.wsapi_port
    return Options(conf.ofp_listen_host, port, conf.wsapi_host, rest_port, files)


def refuse_taken_port(host: str, port: int, what: str) -> None:
    """Raise KnotlessError if the port is in use."""
    try:
        free_port(port, host)
    except OSError as error:
        raise KnotlessError(
            f"cannot listen for {what} on {host} port {port}: {error.strerror};"
            " stop what listens there, or choose another port"
        ) from error


def allow_open_files() -> None:
    """Use as many open files as this process may: each connection is one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
