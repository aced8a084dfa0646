"""Checks that precede the handling of every request, and headers of each answer.

A page of another web site can have its reader's browser send requests to this server. It cannot
know the token, and two more checks do not depend on that: a browser says where a page is from
(``Origin``), and a name that the site has pointed to our address is not ours (``Host``).
"""

from __future__ import annotations

import ipaddress
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY_BYTES = 64 << 10
MAX_TARGET_BYTES = 2048
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class RefusedError(Exception):
    """A request that is not served."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status

    def response(self) -> JSONResponse:
        """Return the answer."""
        return JSONResponse({"error": str(self)}, self.status)


class Guard:
    """Middleware around the whole application; ``host`` is the name at which it listens."""

    def __init__(self, app: ASGIApp, host: str) -> None:
        self._app, self._host = app, host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        left = MAX_BODY_BYTES

        async def receive_bounded() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, _TOO_LONG)
            return message

        try:
            check(scope, self._host)
            await self._app(scope, receive_bounded, send_with_headers)
        except RefusedError as refused:
            await refused.response()(scope, receive, send_with_headers)


_TOO_LONG = f"a request has at most {MAX_BODY_BYTES} bytes"


def check(scope: Scope, own_host: str) -> None:
    """Raise :class:`RefusedError` for a request that is too long or not for us."""
    headers = Headers(scope=scope)
    if len(scope["raw_path"] or b"") + len(scope["query_string"]) > MAX_TARGET_BYTES:
        raise RefusedError(
            HTTPStatus.REQUEST_URI_TOO_LONG, f"an address has at most {MAX_TARGET_BYTES} bytes"
        )
    host = headers.get("host", "")
    if not is_ours(host, own_host):
        raise RefusedError(HTTPStatus.FORBIDDEN, "Host is neither an address nor our own name")
    origin = headers.get("origin")
    if origin is not None and origin.lower() != f"http://{host.lower()}":
        raise RefusedError(HTTPStatus.FORBIDDEN, "a page of another web site may read nothing")
    length = headers.get("content-length", "0")
    if not length.isdecimal() or len(length) > 9 or int(length) > MAX_BODY_BYTES:
        raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, _TOO_LONG)


def is_ours(host: str, own_host: str) -> bool:
    """Tell whether a ``Host`` header is an address, ``localhost``, or our own name."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if name in ("localhost", own_host.lower()):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
