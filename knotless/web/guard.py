"""The rules of :mod:`knotless.base.http_rules` for every request of the page, and its headers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from knotless.base.http_rules import (
    LIMITS,
    HttpError,
    Limits,
    OwnNames,
    body_bytes,
    has_token,
    request_turns,
    turn_s,
)

PAGE_LIMITS = replace(LIMITS, head_bytes=16 << 10)
"""Browsers send more headers than programs do."""
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


def response_to(error: HttpError) -> JSONResponse:
    """Return the answer to a request that is refused."""
    return JSONResponse({"error": str(error)}, error.status, error.headers)


class Guard:
    """Middleware around the whole application.

    ``names`` are those at which it is asked; ``token`` returns that with which requests need not
    wait.
    """

    def __init__(
        self,
        app: ASGIApp,
        names: OwnNames,
        token: Callable[[], str | None],
        limits: Limits = PAGE_LIMITS,
    ) -> None:
        self._app, self._names, self._token, self._limits = app, names, token, limits
        self._turns = request_turns(limits)

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

        try:
            headers = Headers(scope=scope)
            self._check(scope, headers)
            if not has_token(headers, self._token()):
                await asyncio.sleep(turn_s(self._turns, time.monotonic(), self._limits))
            with suppress(ClientDisconnect):
                await self._app(scope, receive, send_with_headers)
        except HttpError as refused:
            await response_to(refused)(scope, receive, send_with_headers)

    def _check(self, scope: Scope, headers: Headers) -> None:
        most = self._limits.target_bytes
        if len(scope["raw_path"] or b"") + len(scope["query_string"]) > most:
            raise HttpError(HTTPStatus.REQUEST_URI_TOO_LONG, f"an address has at most {most} bytes")
        self._names.check(headers)
        body_bytes(headers, self._limits)
