"""The rules of HTTP for the REST interface of controllers and for the live page.

Each server enforces them in its own way: :mod:`knotless.controller.rest` on Eventlet,
:mod:`knotless.web` on uvicorn.

A page of another web site can have its reader's browser send requests to us. It cannot know the
token, and two more rules do not depend on that: a browser says where a page is from (``Origin``),
and a name that the site has pointed to our address is not ours (``Host``). Both hold for reads too:
else such a site could read the topology.

References
----------
RFC 9110, HTTP semantics; RFC 9112, HTTP/1.1; RFC 6454, The web origin concept.

"""

from __future__ import annotations

import hmac
import ipaddress
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from knotless.base.errors import KnotlessError
from knotless.base.token_bucket import TokenBucket

_NUMBER = re.compile(r"[0-9]{1,9}")
_NAME = re.compile(r"(?!.*\.\.)[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?")
_SCHEME = "bearer "


class HttpError(Exception):
    """A request that is refused with ``status``; the text, of one line, says why."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the answer that its status asks for."""
        if self.status == HTTPStatus.UNAUTHORIZED:
            return {"WWW-Authenticate": "Bearer"}
        return {"Retry-After": "1"} if self.status == HTTPStatus.TOO_MANY_REQUESTS else {}


@dataclass(frozen=True)
class Limits:
    """The resources that clients may use.

    If there are too many connections, the oldest one whose request is not complete gives way.
    """

    connections: int = 256
    head_bytes: int = 8 << 10
    """Request line and headers together."""
    body_bytes: int = 64 << 10
    target_bytes: int = 2048
    """The address of a request, with its query."""
    request_s: float = 5.0
    """Time for head and body of a request to arrive."""
    response_s: float = 30.0
    """Time for a response to be read; in a stream, for each of its parts."""
    streams: int = 32
    """Event streams at once."""
    requests_per_s: float = 50.0
    """Requests without the token, of all clients together; those with it are not limited."""
    burst: int = 50
    """So many of them may come at once."""


LIMITS = Limits()


# --- where a request is for, and where it is from -----------------------------------------------


@dataclass(frozen=True)
class OwnNames:
    """The names under which a server may be asked, besides any address and ``localhost``.

    ``host`` is the address or name at which it listens, ``names`` are further DNS names of it,
    ``origins`` the public addresses of proxies in front of it, such as ``https://lab.example``.
    """

    host: str
    names: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()

    def check(self, headers: Mapping[str, str]) -> None:
        """Raise HttpError, 403, for a request that is for another host, or from another site.

        Names of ``headers`` are in lower case.
        """
        host = headers.get("host", "").lower()
        if not self.has(host):
            raise HttpError(
                HTTPStatus.FORBIDDEN,
                "Host is neither an address nor our own name (names are given with rest.names,"
                " or --public-origin of a page)",
            )
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in (f"http://{host}", *self.origins):
            raise HttpError(
                HTTPStatus.FORBIDDEN, "a page of another web site may read and change nothing"
            )

    def has(self, host: str) -> bool:
        """Tell whether a ``Host`` header is an address, ``localhost``, or one of our names."""
        name = _name_in(f"//{host}")
        public = (_name_in(origin) for origin in self.origins)
        if name in ("localhost", self.host.lower(), *self.names, *public):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def dns_name(text: str) -> str:
    """Return a DNS name in lower case; raises ValueError if it is none."""
    name = text.lower().removesuffix(".")
    if not _NAME.fullmatch(name):
        raise ValueError(f"{text!r} is no DNS name, such as lab.example (without port or scheme)")
    return name


def public_origin(text: str) -> str:
    """Return the origin that browsers send for a public address; raises KnotlessError.

    Examples
    --------
    >>> public_origin("https://Lab.example:443/")
    'https://lab.example'

    """
    try:
        parts = urlsplit(text)
        name, port = dns_name(parts.hostname or ""), parts.port
    except ValueError:
        name, port = "", None
    more = (parts.path.strip("/"), parts.query, parts.fragment, parts.username) if name else ()
    if not name or parts.scheme not in ("http", "https") or any(more):
        raise KnotlessError(
            f"--public-origin {text!r}: it is written https://NAME or https://NAME:PORT, without a"
            " path"
        )
    default = {"http": 80, "https": 443}[parts.scheme]
    return f"{parts.scheme}://{name}" + (f":{port}" if port not in (None, default) else "")


def _name_in(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


# --- bodies -------------------------------------------------------------------------------------


def body_bytes(headers: Mapping[str, str], limits: Limits = LIMITS) -> int:
    """Return the announced length of a body.

    Raises
    ------
    HttpError
        400 for both ``Content-Length`` and ``Transfer-Encoding``, by which a proxy and we could
        disagree where the next request begins (RFC 9112, 6.1), and for a length that is no plain
        number; 411 for ``Transfer-Encoding`` alone; 413 for too many bytes.

    """
    if "transfer-encoding" in headers:
        if "content-length" in headers:
            text = "Content-Length and Transfer-Encoding: send only Content-Length"
            raise HttpError(HTTPStatus.BAD_REQUEST, text)
        raise HttpError(HTTPStatus.LENGTH_REQUIRED, "send a body with its Content-Length")
    length = headers.get("content-length", "0")
    if not _NUMBER.fullmatch(length):
        raise HttpError(HTTPStatus.BAD_REQUEST, "Content-Length is no number of at most 9 digits")
    if int(length) > limits.body_bytes:
        raise HttpError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has at most {limits.body_bytes} bytes"
        )
    return int(length)


def json_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a body, empty for none; raises HttpError, 400."""
    try:
        content = json.loads(body or b"{}")
    except RecursionError:
        raise HttpError(HTTPStatus.BAD_REQUEST, "the body is nested too deeply") from None
    except ValueError:
        raise HttpError(HTTPStatus.BAD_REQUEST, "the body is not JSON") from None
    if not isinstance(content, dict):
        raise HttpError(HTTPStatus.BAD_REQUEST, "the body must be a JSON object")
    return content


# --- the token, and requests without it ---------------------------------------------------------


def has_token(headers: Mapping[str, str], token: str | None) -> bool:
    """Tell whether a request shows the token; nobody does where there is none."""
    given = headers.get("authorization", "")
    scheme, shown = given[: len(_SCHEME)].lower(), given[len(_SCHEME) :].strip()
    right = hmac.compare_digest(shown.encode(errors="replace"), (token or "").encode())
    return token is not None and right and scheme == _SCHEME


def request_turns(limits: Limits = LIMITS) -> TokenBucket:
    """Return the bucket of :func:`turn_s`."""
    return TokenBucket(limits.requests_per_s, limits.burst)


def turn_s(turns: TokenBucket, now_s: float, limits: Limits = LIMITS) -> float:
    """Return how long a request without token that comes now waits: they have turns in order.

    Raises
    ------
    HttpError
        429: so many wait that it would be longer than a request may take.

    """
    wait_s = turns.reserve_s(now_s, limits.request_s)
    if wait_s is None:
        raise HttpError(
            HTTPStatus.TOO_MANY_REQUESTS, "too many requests without token: try again later"
        )
    return wait_s
