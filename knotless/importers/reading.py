"""One file, read by the reader that recognises it."""

from __future__ import annotations

from knotless.base.errors import KnotlessError, RuleError
from knotless.base.memory import Cost, refuse_beyond
from knotless.importers.file_kinds import Content, FileKind, FoundFile, file_kinds, kind_of
from knotless.importers.frr import reader
from knotless.importers.linux import network_interfaces
from knotless.importers.not_read import NotRead, backup, system_of, unknown_kind, unreadable
from knotless.importers.sources import Source

_CONFIGURATIONS = (reader.KIND, network_interfaces.KIND)


def read_source(source: Source, *, configurations: bool = False) -> FoundFile | NotRead:
    """Return what a reader finds in a file, or why a file that no user named is not read.

    Configurations of routing are read only on request: what they lead to is in lists of routes.

    Raises
    ------
    KnotlessError
        It is named, and cannot be read or is of no known kind.

    """
    if not source.named and (copy := backup(source.path)):
        return copy
    kind: FileKind | None = None
    try:
        refuse_beyond("this file", Cost.IMPORTED_FILE.bytes_for(len(source.data)), RuleError)
        text = source.data.decode(errors="replace").replace("\0", "")
        content = Content(text.removeprefix("\ufeff"), source.path.name)
        kind = kind_of(content)
        if text.encode() != source.data:
            raise RuleError("cannot be read: not UTF-8 text")
        if kind is None and source.named:
            if system := system_of(text):
                raise RuleError(f"the configuration of {system}, which is not read")
            raise RuleError(f"no known kind of file; known are {', '.join(file_kinds())}")
        if kind in _CONFIGURATIONS and not configurations:
            reason = f"{kind.name}: read with --routes bgp or static only"
            if source.named:
                raise RuleError(reason)
            return NotRead(str(source.path), reason)
        value = None if kind is None else kind.read(content)
    except KnotlessError as error:
        if source.named:
            raise error.within(str(source.path)) from None
        return unreadable(source.path, source.data, str(error), kind.name if kind else None)
    if kind is None:
        return unknown_kind(source.path, source.data, configurations=configurations)
    return FoundFile(source.path, kind, value, source.device, source.replaced_by)
