"""HTTP requests and responses, one of each on a connection; parsing is pure and strict.

References
----------
RFC 9112, HTTP/1.1.

"""

from __future__ import annotations

import http.client
import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Protocol, Self

END_OF_HEAD = b"\r\n\r\n"
_REQUEST_LINE = re.compile(rb"([A-Z]{1,16}) (/[!-~]*) HTTP/1\.[01]")
_NUMBER = re.compile(r"[0-9]{1,9}")


class HttpError(Exception):
    """A request that is refused with ``status``; the text, of one line, says why."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class Request:
    """A request; names of ``headers`` are in lower case, ``path`` is without its query."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def body_bytes(self) -> int:
        """The announced length of the body; raises HttpError if it is not a plain number."""
        if "transfer-encoding" in self.headers:
            raise HttpError(HTTPStatus.LENGTH_REQUIRED, "send a body with its Content-Length")
        text = self.headers.get("content-length", "0")
        if not _NUMBER.fullmatch(text):
            raise HttpError(HTTPStatus.BAD_REQUEST, "Content-Length is no number")
        return int(text)


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
    found = json_response({"error": str(error)}, error.status)
    if error.status == HTTPStatus.UNAUTHORIZED:
        return Response(found.body, status=found.status, headers={"WWW-Authenticate": "Bearer"})
    return found


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
    path = words[2].decode("ascii").partition("?")[0]
    return Request(words[1].decode("ascii"), path, headers)
