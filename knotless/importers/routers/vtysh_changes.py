"""A change of the configuration of FRR before it is made: lines as one types them into vtysh.

Only what certainly means one thing is applied. Of some statements FRR keeps the last, of others
all; where a line may be either, the one that it would replace has to be removed first with ``no``.

References
----------
FRR User Guide, chapters VTYSH, Static, BGP, Route Maps and Filtering.

"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from knotless.base.errors import RuleError
from knotless.base.suggestions import suggestion
from knotless.importers.file_kinds import Content, FoundFile
from knotless.importers.frr.configuration import FrrConfiguration
from knotless.importers.frr.reader import read_configuration
from knotless.importers.frr.without_effect import leaves_state_alone
from knotless.importers.reading import read_source
from knotless.importers.routers.files import folder_of_router
from knotless.importers.sources import Source

Context = tuple[str, ...]
_OPENING = re.compile(
    r"interface \S+( vrf \S+)?|router .+|route-map \S+ (permit|deny) \d+|vrf \S+|bfd|line vty"
    r"|key chain \S+"
)
"""Statements that open a section at the top."""
_AT_TOP = re.compile(
    r"(no )?(router|route-map|hostname|log|interface|bfd|line|key|(ip|ipv6) (route|prefix-list))"
    r"( .*)?"
)
"""Statements that leave the section that they are in; ``ip route`` stays in one of a VRF."""
_CLOSING = ("exit", "exit-address-family", "exit-vrf")
_NOT_OF_A_CONFIGURATION = ("show", "clear", "do", "debug", "reload", "copy", "configure", "enable")
_STARTS = re.compile(r"conf\S*( t\S*)?|write( memory| file)?|wr|copy running-config startup-config")
_KEYS = re.compile(r"(ip|ipv6) prefix-list \S+ seq \d+|neighbor \S+ peer-group")
"""Of what FRR has one value: it replaces that, or refuses another one."""


@dataclass(frozen=True)
class _Line:
    """A statement in its section, which it opens if ``opens``; ``raw`` is the line in the file."""

    context: Context
    text: str
    raw: str
    opens: bool = False


def running_configuration(name: str, sources: Iterable[Source]) -> Source | None:
    """Return the file with the configuration of FRR on a router; None: there is none.

    ``name`` is its host name, or the name of the folder with its files.

    Raises
    ------
    RuleError
        It is in several files.

    """
    own = []
    for source in sources:
        content = read_source(replace(source, named=False), configurations=True)
        if isinstance(content, FoundFile) and isinstance(content.value, FrrConfiguration):
            folders = {source.device.name, folder_of_router(source.device).name}
            if name in (folders if not content.value.host else {content.value.host, *folders}):
                own.append(source)
    present = {source.path for source in own}
    own = [source for source in own if source.replaced_by not in present]
    if len(own) > 1:
        paths = ", ".join(str(source.path) for source in own)
        raise RuleError(f"its configuration is in several files: {paths}"[:400])
    return own[0] if own else None


def changed_configuration(config: str, change: str) -> tuple[str, list[str]]:
    """Return a configuration of FRR after lines for vtysh, and those that may change routes.

    Parameters
    ----------
    config : str
        ``frr.conf``, or what ``show running-config`` shows.
    change : str
        Lines for vtysh; ``configure terminal`` and ``write`` may be among them.

    Raises
    ------
    RuleError
        A line is no statement of a configuration, removes what is not there, or may mean more
        than one thing.

    """
    changed = _Configuration(config)
    undecided = []
    context: Context = ()
    count = 0
    for number, line in enumerate(change.splitlines(), 1):
        text = " ".join(line.split())
        if not text or text[0] in "!#" or _STARTS.fullmatch(text):
            continue
        count += 1
        try:
            if text.split()[0] in _NOT_OF_A_CONFIGURATION:
                raise RuleError("it is no statement of a configuration")
            context, effective = changed.apply(context, text)
        except RuleError as error:
            raise RuleError(f"line {number}, {text[:60]!r}: {error}") from None
        if effective:
            undecided.append(text)
    if not count:
        raise RuleError("there is no line for vtysh, such as 'ip route 10.0.0.0/8 10.1.0.1'")
    return changed.text, undecided


class _Configuration:
    def __init__(self, text: str) -> None:
        self._lines: list[_Line] = []
        context: Context = ()
        for raw in text.splitlines():
            statement = " ".join(raw.split())
            if not statement or statement[0] in "!#":
                self._lines.append(_Line(context, "", raw))
                continue
            is_inner = statement.startswith(("neighbor ", "address-family ", *_CLOSING))
            if not raw[0].isspace() and not is_inner:
                context = ()
            context, opens = _within(context, statement)
            self._lines.append(_Line(context, statement, raw, opens))
            if statement in _CLOSING:
                context = context[:-1]

    @property
    def text(self) -> str:
        """The configuration as text."""
        return "".join(f"{line.raw}\n" for line in self._lines)

    def apply(self, context: Context, text: str) -> tuple[Context, bool]:
        """Apply a statement in a section.

        Returns the section that it leads to, and whether it may change what the router does.
        """
        if text == "end":
            return (), False
        if text in _CLOSING:
            return context[:-1], False
        if context[:1] and _AT_TOP.fullmatch(text) and not _stays(context, text):
            context = ()
        inner, opens = _within(context, text)
        if opens:
            is_new = self._open(inner)
            return inner, is_new and not leaves_state_alone(inner, text)
        changes = self._remove(inner, text[3:]) if text[:3] == "no " else self._add(inner, text)
        return inner, changes and not leaves_state_alone(inner, text.removeprefix("no "))

    def _open(self, context: Context) -> bool:
        """Open a section at the end of the one that it is in; return whether it is a new one."""
        if any(line.context == context for line in self._lines):
            return False
        self._insert(context[:-1], _line(context, context[-1], opens=True))
        closing = "exit-address-family" if len(context) > 1 else "exit"
        self._insert(context, _Line(context, closing, " " * (len(context) - 1) + closing))
        return True

    def _add(self, context: Context, text: str) -> bool:
        present = self._in(context)
        if text in present:
            return False
        for other in present:
            if _may_replace(context, text, other):
                raise RuleError(f"there is {other[:60]!r}: remove it first, with 'no {other[:60]}'")
        if not context and re.match(r"(ip|ipv6) prefix-list \S+ (permit|deny) ", text):
            raise RuleError("say where in the list it is, with 'seq NUMBER'")
        self._drop(lambda line: line.context == context and line.text == f"no {text}")
        self._insert(context, _line(context, text))
        return True

    def _remove(self, context: Context, text: str) -> bool:
        words = text.split()
        if re.fullmatch(r"neighbor \S+( interface)? (remote-as|peer-group)( \S+)?", text):
            raise RuleError(
                f"it removes more than this line; say 'no neighbor {words[1][:40]}' and what stays"
            )
        if re.fullmatch(r"neighbor \S+", text):
            self._refuse_group_with_members(context, words[1])
            removed = self._drop(
                lambda line: line.context[: len(context)] == context
                and _begins(line.text.removeprefix("no "), text)
            )
        elif re.fullmatch(r"router bgp( \d[\d.]*)?|route-map \S+( (permit|deny) \d+)?", text):
            removed = self._drop(lambda line: bool(line.context) and _begins(line.context[0], text))
        elif re.fullmatch(r"(ip|ipv6) prefix-list \S+", text):
            removed = self._drop(lambda line: not line.context and _begins(line.text, text))
        else:
            removed = self._drop(lambda line: line.context == context and line.text == text)
        negative = f"no {text}"
        if negative in self._in(context):
            return removed
        if self._is_followed(context, negative):
            self._insert(context, _line(context, negative))
        elif not removed:
            near = [one for one in self._in(context) if one.split()[:2] == words[:2]]
            hint = suggestion(text, near) if near else "nothing here begins so"
            raise RuleError(f"there is no {text[:60]!r} to remove; {hint}"[:300])
        return True

    def _refuse_group_with_members(self, context: Context, name: str) -> None:
        members = [one for one in self._in(context) if one.endswith(f" peer-group {name}")]
        if members:
            raise RuleError(f"{members[0].split()[1][:40]} is a member of it: remove that first")

    def _is_followed(self, context: Context, text: str) -> bool:
        """Tell whether the reader understands a statement in its section."""
        opened = [f"{' ' * depth}{name}" for depth, name in enumerate(context)]
        alone = "\n".join([*opened, f"{' ' * len(context)}{text}"])
        read = read_configuration(Content(alone, "frr.conf"))
        entries = [entry for entries in read.route_maps.values() for entry in entries.values()]
        return not any([read.unclear, *(entry.unclear for entry in entries)])

    def _in(self, context: Context) -> list[str]:
        return [
            line.text
            for line in self._lines
            if line.context == context and line.text and not line.opens
        ]

    def _drop(self, is_meant: Callable[[_Line], bool]) -> bool:
        kept = [line for line in self._lines if not line.text or not is_meant(line)]
        removed = len(kept) < len(self._lines)
        self._lines = kept
        return removed

    def _insert(self, context: Context, line: _Line) -> None:
        """Insert a line behind the last one of a section, before the one that closes it."""
        if not context:
            self._lines.append(line)
            return
        last = max(n for n, one in enumerate(self._lines) if one.context == context and one.text)
        self._lines.insert(last + (self._lines[last].text not in _CLOSING), line)


def _line(context: Context, text: str, *, opens: bool = False) -> _Line:
    depth = len(context) - opens
    return _Line(context, text, " " * depth + text, opens)


def _within(context: Context, text: str) -> tuple[Context, bool]:
    """Return the section of a statement, its own one if it opens one, and whether it does."""
    if context[:1] and context[0].startswith("router bgp ") and _begins(text, "address-family"):
        family = text if len(text.split()) > 2 else f"{text} unicast"
        return (context[0], family), True
    if text.startswith(("router ", "route-map ", "interface ")):
        context = ()
    if not context and _OPENING.fullmatch(text):
        return (text,), True
    return context, False


def _stays(context: Context, text: str) -> bool:
    return context[0].startswith("vrf ") and " route " in text


def _begins(text: str, start: str) -> bool:
    """Tell whether a statement begins with these words."""
    return f"{text} ".startswith(f"{start} ")


def _may_replace(context: Context, text: str, other: str) -> bool:
    """Tell whether FRR may keep only one of two different statements of a section."""
    if _begins(text, other) or _begins(other, text):
        return True
    if context[:1] and context[0].startswith("route-map "):
        return text.split()[:2] == other.split()[:2]
    key, other_key = _KEYS.match(text), _KEYS.match(other)
    return key is not None and other_key is not None and key[0] == other_key[0]
