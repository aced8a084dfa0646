"""The Ryu application: ``ryu-manager controller/app.py``; it is :mod:`knotless.controller.app`."""

from knotless.controller import app


class KnotlessController(app.KnotlessController):
    """Ryu runs applications that the file itself defines, not those that it imports."""
