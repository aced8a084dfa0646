"""The paths of the HTTP interface: reads for everybody, writes with the token."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus

from knotless.controller.northbound.access import Access
from knotless.controller.northbound.message import HttpError, Request, Response, json_response


class Api:
    """Answers requests.

    ``reads`` are the paths of GET, ``writes`` those of POST. A read returns a response or a value
    for JSON; a write is given the body and returns a value for JSON.
    """

    def __init__(
        self,
        reads: Mapping[str, Callable[[], object]],
        writes: Mapping[str, Callable[[bytes], object]],
        access: Access,
    ) -> None:
        self._reads, self._writes, self._access = reads, writes, access

    def answer(self, request: Request) -> Response:
        """Return the response; raises HttpError, whose status is 401, 403, 404 or 405."""
        method = "GET" if request.path in self._reads else "POST"
        if request.path not in {**self._reads, **self._writes}:
            raise HttpError(HTTPStatus.NOT_FOUND, f"there are {' '.join(self.paths)}")
        if request.method != method:
            raise HttpError(HTTPStatus.METHOD_NOT_ALLOWED, f"{request.path} needs {method}")
        if method == "GET":
            found = self._reads[request.path]()
            return found if isinstance(found, Response) else json_response(found)
        self._access.check(request)
        return json_response(self._writes[request.path](request.body))

    @property
    def paths(self) -> list[str]:
        """All paths, sorted."""
        return sorted({*self._reads, *self._writes})
