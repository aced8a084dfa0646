"""Who may change something: programs that know the token, and no page of another web site."""

from __future__ import annotations

import fcntl
import hmac
import ipaddress
import os
import secrets
import stat
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

from knotless.base.files import read_text
from knotless.controller.northbound.message import HttpError, Request
from knotless.topologies import KnotlessError

TOKEN_BYTES = 32
MIN_TOKEN_LENGTH = 16
_MAX_TOKEN_BYTES = 1024
_SCHEME = "bearer "


@dataclass(frozen=True)
class Access:
    """What a request needs to change something.

    Without a ``token`` nobody may. ``host`` is the address or name at which we listen.
    """

    token: str | None
    host: str

    def check(self, request: Request) -> None:
        """Check a request that changes something.

        A page of another web site can have its reader's browser send requests to us. It cannot
        know the token. Two more checks do not depend on that: a browser says where a page is from
        (``Origin``), and a name that the site has pointed to our address is not ours (``Host``).

        Raises
        ------
        HttpError
            401 without the right token, 403 for a wrong Host or Origin.

        """
        host = request.headers.get("host", "")
        if not self._is_ours(host):
            raise HttpError(HTTPStatus.FORBIDDEN, "Host is neither an address nor our own name")
        origin = request.headers.get("origin")
        if origin is not None and origin.lower() != f"http://{host.lower()}":
            raise HttpError(HTTPStatus.FORBIDDEN, "a page of another web site may change nothing")
        if self.token is None:
            raise HttpError(HTTPStatus.UNAUTHORIZED, "nothing can be changed: set rest.token_file")
        given = request.headers.get("authorization", "")
        scheme, token = given[: len(_SCHEME)].lower(), given[len(_SCHEME) :].strip()
        if not hmac.compare_digest(token.encode(), self.token.encode()) or scheme != _SCHEME:
            raise HttpError(
                HTTPStatus.UNAUTHORIZED, "send 'Authorization: Bearer TOKEN' with the right token"
            )

    def _is_ours(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name in ("localhost", self.host.lower()):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


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
