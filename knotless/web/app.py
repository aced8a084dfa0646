"""The routes of the server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any, Protocol

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from knotless.base.errors import KnotlessError
from knotless.base.http_rules import HttpError, Limits, OwnNames, has_token, json_object
from knotless.web.feed import MAX_CLIENTS, Client, Feed, TooManyClientsError
from knotless.web.guard import PAGE_LIMITS, Guard, response_to

STATIC = Path(__file__).with_name("static")
FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/app.js": ("app.js", "text/javascript; charset=utf-8"),
    "/app.css": ("app.css", "text/css; charset=utf-8"),
    "/licences.txt": ("licences.txt", "text/plain; charset=utf-8"),
}

Action = Callable[[Mapping[str, Any]], dict[str, Any]]


class Source(Protocol):
    """The source that fills the feed, and the actions on it."""

    @property
    def actions(self) -> Mapping[str, Action]:
        """The actions of a page with the token, by name; each raises KnotlessError if refused."""

    def token(self) -> str | None:
        """Return the token that permits actions; None if nobody may act."""

    async def run(self) -> None:
        """Fill the feed until cancelled."""


def make_app(
    feed: Feed,
    source: Source,
    names: OwnNames = OwnNames("127.0.0.1"),  # noqa: B008 - it is frozen
    limits: Limits = PAGE_LIMITS,
) -> Guard:
    """Return the application; ``names`` are those at which it will be asked."""

    async def timeline(_: Request) -> Response:
        return JSONResponse(feed.history.timeline())

    async def frames(request: Request) -> Response:
        first, count = (_number(request, name) for name in ("first", "count"))
        return Response(feed.history.frames(first, count), media_type="application/json")

    async def act(request: Request) -> Response:
        check_token(request, source.token())
        action = source.actions.get(request.path_params["name"])
        if action is None:
            raise HttpError(HTTPStatus.NOT_FOUND, "there is no such action here")
        fields = json_object(await request.body())
        try:
            return JSONResponse(await run_in_threadpool(action, fields))
        except KnotlessError as error:
            raise HttpError(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from error

    async def stream(_: Request) -> Response:
        try:
            return Stream(feed.connect())
        except TooManyClientsError:
            text = f"{MAX_CLIENTS} pages are open already"
            raise HttpError(HTTPStatus.SERVICE_UNAVAILABLE, text) from None

    def answer(read: Callable[[], Any]) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(_: Request) -> Response:
            return JSONResponse(read())

        return endpoint

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(source.run())
        yield
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    routes = [
        *(Route(path, _file(*file), methods=["GET"]) for path, file in FILES.items()),
        Route("/api/picture", answer(feed.picture), methods=["GET"]),
        Route("/api/state", answer(lambda: feed.state), methods=["GET"]),
        Route("/api/events", answer(feed.events), methods=["GET"]),
        Route("/api/changes", answer(lambda: feed.changes), methods=["GET"]),
        Route("/api/timeline", timeline, methods=["GET"]),
        Route("/api/frames", frames, methods=["GET"]),
        Route("/api/stream", stream, methods=["GET"]),
        Route("/api/actions/{name}", act, methods=["POST"]),
    ]
    inner = Starlette(routes=routes, exception_handlers={HttpError: _refuse}, lifespan=lifespan)
    return Guard(inner, names, source.token, limits)


class Stream(Response):
    """Server-sent events to one page, until it leaves or stops reading."""

    def __init__(self, client: Client) -> None:
        super().__init__(media_type="text/event-stream")
        self._client = client
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the page is closed."""
        del scope

        async def feed_page() -> None:
            start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
            await send(start)
            async for text in self._client.messages():
                part = {"type": "http.response.body", "body": text, "more_body": True}
                await asyncio.wait_for(send(part), PAGE_LIMITS.response_s)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

        async def await_the_end() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass

        tasks = [asyncio.create_task(feed_page()), asyncio.create_task(await_the_end())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._client.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def check_token(request: Request, token: str | None) -> None:
    """Raise :class:`HttpError` unless a request shows the token in its header."""
    if token is None:
        raise HttpError(HTTPStatus.UNAUTHORIZED, "nothing can be changed from this page")
    if not has_token(request.headers, token):
        raise HttpError(
            HTTPStatus.UNAUTHORIZED, "send 'Authorization: Bearer TOKEN' with the right token"
        )


def _refuse(_: Request, error: Exception) -> Response:
    if not isinstance(error, HttpError):
        raise error
    return response_to(error)


def _file(name: str, media_type: str) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(_: Request) -> Response:
        return FileResponse(STATIC / name, media_type=media_type)

    return endpoint


def _number(request: Request, name: str) -> int:
    text = request.query_params.get(name, "")
    if not text.isdecimal() or len(text) > 12:
        raise HttpError(HTTPStatus.BAD_REQUEST, f"{name}: a number is needed")
    return int(text)
