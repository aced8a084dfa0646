"""The paths of the HTTP interface: reads for everybody, writes with the token."""

from __future__ import annotations

import fcntl
import http.client
import io
import json
import os
import re
import secrets
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path
from typing import Protocol, Self

from knotless.base.files import read_text
from knotless.base.http_rules import HttpError, OwnNames, has_token
from knotless.controller import runtime
from knotless.topologies import KnotlessError

KEPT_S = 0.1
"""The answer to a read is not computed more often."""


class Api:
    """Answers requests.

    ``reads`` are the paths of GET, ``writes`` those of POST. A read returns a response or a value
    for JSON; a write is given the body and returns a value for JSON.

    The answer to a read is kept for a tenth of a second on the clock ``now_s``, unless the number
    of events grows, which ``happened`` returns: however many ask, it costs the same.
    """

    def __init__(
        self,
        reads: Mapping[str, Callable[[], object]],
        writes: Mapping[str, Callable[[bytes], object]],
        access: Access,
        now_s: Callable[[], float] = runtime.now_s,
        happened: Callable[[], int] = int,
    ) -> None:
        self._reads, self._writes, self.access = reads, writes, access
        self._now_s, self._happened = now_s, happened
        self._kept: dict[str, tuple[float, int, Response]] = {}

    def answer(self, request: Request) -> Response:
        """Return the response; raises HttpError, whose status is 401, 403, 404 or 405."""
        self.access.check_read(request)
        method = "GET" if request.path in self._reads else "POST"
        if request.path not in {**self._reads, **self._writes}:
            raise HttpError(HTTPStatus.NOT_FOUND, f"there are {' '.join(self.paths)}")
        if request.method != method:
            raise HttpError(HTTPStatus.METHOD_NOT_ALLOWED, f"{request.path} needs {method}")
        if method == "GET":
            return self._read(request.path)
        self.access.check_write(request)
        try:
            return json_response(self._writes[request.path](request.body))
        finally:
            self._kept.clear()

    def _read(self, path: str) -> Response:
        if (kept := self._kept.get(path)) is not None:
            made_s, number, response = kept
            if number == self._happened() and self._now_s() - made_s <= KEPT_S:
                return response
        number = self._happened()
        content = self._reads[path]()
        response = content if isinstance(content, Response) else json_response(content)
        if response.stream is None:
            self._kept[path] = (self._now_s(), number, response)
        return response

    @property
    def paths(self) -> list[str]:
        """All paths, sorted."""
        return sorted({*self._reads, *self._writes})


# --- requests and responses -------------------------------------------------------------------

END_OF_HEAD = b"\r\n\r\n"
_REQUEST_LINE = re.compile(rb"([A-Z]{1,16}) (/[!-~]*) HTTP/1\.[01]")


@dataclass(frozen=True)
class Request:
    """A request; names of ``headers`` are in lower case, ``path`` is without its query."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    target: str = ""
    """The path with its query, as it was sent."""


class Stream(Protocol):
    """Parts of a response that come later, until the stream ends or the client leaves."""

    def __iter__(self) -> Self:
        """Return itself."""

    def __next__(self) -> bytes:
        """Return the next part, after waiting for it."""

    def close(self) -> None:
        """End the stream."""


@dataclass(frozen=True)
class Response:
    """A response: ``body``, or instead of it a ``stream`` of bytes that ends when it likes."""

    body: bytes = b""
    content_type: str = "application/json"
    status: HTTPStatus = HTTPStatus.OK
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: Stream | None = None

    def head(self) -> bytes:
        """Return status line and headers; the connection ends with the response."""
        fields = {
            "Content-Type": self.content_type,
            "Connection": "close",
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            **self.headers,
        }
        if self.stream is None:
            fields["Content-Length"] = str(len(self.body))
        lines = [f"HTTP/1.1 {self.status.value} {self.status.phrase}"]
        lines += [f"{name}: {value}" for name, value in fields.items()]
        return "\r\n".join(lines).encode("latin-1") + END_OF_HEAD


def json_response(content: object, status: HTTPStatus = HTTPStatus.OK) -> Response:
    """Return ``content`` as JSON."""
    return Response(json.dumps(content).encode() + b"\n", status=status)


def error_response(error: HttpError) -> Response:
    """Return a refusal as JSON: ``{"error": "..."}``."""
    response = json_response({"error": str(error)}, error.status)
    return replace(response, headers=error.headers)


def parse_head(head: bytes) -> Request:
    """Parse everything up to the empty line; raises HttpError if it is not HTTP/1."""
    line, _, rest = head.partition(b"\r\n")
    words = _REQUEST_LINE.fullmatch(line)
    if words is None:
        raise HttpError(HTTPStatus.BAD_REQUEST, "the first line is no request of HTTP/1.1")
    try:
        fields = http.client.parse_headers(io.BytesIO(rest + b"\r\n"))
    except http.client.HTTPException as error:
        raise HttpError(HTTPStatus.BAD_REQUEST, "the headers cannot be read") from error
    headers: dict[str, str] = {}
    for name, value in fields.items():
        if name.lower() in headers:
            raise HttpError(HTTPStatus.BAD_REQUEST, f"two headers {name[:40]!r}")
        headers[name.lower()] = str(value).strip()
    target = words[2].decode("ascii")
    return Request(words[1].decode("ascii"), target.partition("?")[0], headers, target=target)


# --- access -----------------------------------------------------------------------------------

TOKEN_BYTES = 32
MIN_TOKEN_LENGTH = 16
_MAX_TOKEN_BYTES = 1024


@dataclass(frozen=True)
class Access:
    """The conditions for requests; without a ``token`` nobody may change anything."""

    token: str | None
    names: OwnNames

    def has_token(self, request: Request) -> bool:
        """Tell whether a request shows the token."""
        return has_token(request.headers, self.token)

    def check_read(self, request: Request) -> None:
        """Raise HttpError, 403, for a wrong Host or Origin."""
        self.names.check(request.headers)

    def check_write(self, request: Request) -> None:
        """Raise HttpError: as for a read, and 401 without the right token."""
        self.check_read(request)
        if self.token is None:
            raise HttpError(HTTPStatus.UNAUTHORIZED, "nothing can be changed: set rest.token_file")
        if not self.has_token(request):
            raise HttpError(
                HTTPStatus.UNAUTHORIZED, "send 'Authorization: Bearer TOKEN' with the right token"
            )


def read_token(path: Path) -> str:
    """Return the token in a file; a file that does not exist, or is empty, gets a new one.

    Several controllers may do that at once: they all return the same token.

    Raises KnotlessError if others may read the file, or if it holds no token.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError:
        # Reading says what is wrong; a file that we may only read is not wrong.
        return _existing(path)
    with os.fdopen(descriptor, "r+b", buffering=0) as file:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode) and not status.st_mode & 0o077:
            # Whoever created it may not have written yet: the one with the lock does.
            fcntl.flock(file, fcntl.LOCK_EX)
            if os.fstat(descriptor).st_size == 0:
                file.write(secrets.token_urlsafe(TOKEN_BYTES).encode() + b"\n")
        return _existing(path)


def _existing(path: Path) -> str:
    try:
        text = read_text(path, KnotlessError, _MAX_TOKEN_BYTES).strip()
        mode = path.stat().st_mode
    except KnotlessError as error:
        raise error.within("rest.token_file") from error
    if mode & 0o077:
        raise KnotlessError(
            f"rest.token_file: others may read {path}: delete it, and a new token is created"
        )
    if len(text) < MIN_TOKEN_LENGTH or not text.isprintable():
        raise KnotlessError(
            f"rest.token_file: {path} holds no token of at least {MIN_TOKEN_LENGTH} characters:"
            " delete it, and one is created"
        )
    return text
