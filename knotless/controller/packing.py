"""Objects as bytes, between two processes that share some objects already.

A change of routes refers to most of what switches hold. What both processes know is sent as its
number, so a change is small, and what is read from its bytes refers to the reader's own objects.
"""

from __future__ import annotations

import io
import pickle
import zlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from knotless.base.gc_pause import collector_paused


class Packing:
    """Packs objects that refer to ``shared``; the other process has these in the same order."""

    def __init__(self, shared: Sequence[object] = ()) -> None:
        self.shared = tuple(shared)
        self._numbers = {id(one): number for number, one in enumerate(self.shared)}

    def pack(self, what: object) -> bytes:
        """Return an object as bytes, without the values of cached properties."""
        packed = io.BytesIO()
        _Pickler(packed, self._numbers).dump(what)
        return zlib.compress(packed.getvalue(), 1)

    def unpack(self, packed: bytes) -> Any:
        """Return the object that these bytes of our own describe."""
        with collector_paused():
            return _Unpickler(io.BytesIO(zlib.decompress(packed)), self.shared).load()


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, numbers: dict[int, int]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._numbers = numbers

    def persistent_id(self, what: object) -> int | None:
        return self._numbers.get(id(what))

    def reducer_override(self, what: Any) -> Any:
        computed = frozenset() if isinstance(what, type) else _cached(type(what))
        if not computed:
            return NotImplemented
        make, how, _, *rest = what.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        # A copy first: another thread may compute a property at this moment.
        state = dict(vars(what))
        return make, how, {name: of for name, of in state.items() if name not in computed}, *rest


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, shared: Sequence[object]) -> None:
        super().__init__(file)
        self._shared = shared

    def persistent_load(self, number: int) -> object:
        return self._shared[number]


_CACHED: dict[type, frozenset[str]] = {}


def _cached(of: type) -> frozenset[str]:
    """Return the names of the cached properties of a class."""
    if of not in _CACHED:
        values = [item for base in of.__mro__ for item in vars(base).items()]
        names = (name for name, value in values if isinstance(value, cached_property))
        _CACHED[of] = frozenset(names)
    return _CACHED[of]
