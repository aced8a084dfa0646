"""The REST server in a process of its own, as in a controller: ``rest_server.py PORT LIMITS``."""

from __future__ import annotations

import json
import sys
from contextlib import suppress

from knotless.base.http_rules import Limits, OwnNames, json_object
from knotless.controller.rest.api import Access, Api
from knotless.controller.rest.events import Events
from knotless.controller.rest.server import Server

TOKEN = "correct-horse-battery-staple"  # noqa: S105 - of tests only
NAMES = ("lab.example",)


def main() -> None:
    """Serve until the process is ended."""
    port, limits = int(sys.argv[1]), Limits(**json.loads(sys.argv[2]))
    events = Events()
    reads = {"/state": lambda: {"topology": "secret"}, "/stream": events.response}
    access = Access(TOKEN, OwnNames("127.0.0.1", NAMES))
    server = Server(("127.0.0.1", port), Api(reads, {"/change": json_object}, access), limits)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    with suppress(KeyboardInterrupt):
        server.serve_forever()


if __name__ == "__main__":
    main()
