"""Lines of the prompt that run a program on a node: ``h1 ping h3``, and which names need quotes.

Pure functions.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Collection, Iterable

from knotless.base.printable import listed
from knotless.emulation.host_words import host_in

_FIRST = re.compile(r"\s*(?:'([^']*)'|\"([^\"]*)\"|(\S+))(?:\s+(.*))?", re.DOTALL)
_SHOWN = 4


def node_and_words(
    line: str, nodes: Collection[str], commands: Collection[str]
) -> tuple[str, str] | None:
    """Return the node that a line begins with, and what follows; None if there is none.

    The prompt's own command comes first if a node has its name, unless the name is in quotes.

    Examples
    --------
    >>> node_and_words("h1-1 ping h2", ["h1-1", "net"], ["net"])
    ('h1-1', 'ping h2')
    >>> node_and_words("net", ["net"], ["net"]) is None
    True
    >>> node_and_words("'net' ping h2", ["net"], ["net"])
    ('net', 'ping h2')

    """
    match = _FIRST.fullmatch(line)
    if match is None:
        return None
    quoted = match[1] or match[2]
    name = quoted or match[3] or ""
    if name not in nodes or (not quoted and name in commands):
        return None
    return name, (match[4] or "").strip()


def with_addresses(words: str, hosts: Collection[str], address: Callable[[str], str]) -> str:
    """Return the words of a program with the IP addresses of hosts in place of their names.

    ``address`` is called for the hosts that occur (:func:`knotless.emulation.host_words.host_in`).

    Examples
    --------
    >>> addresses = {"h2": "10.0.2.1", "2": "10.0.9.1"}
    >>> with_addresses("ping -c 2 h2", addresses, addresses.__getitem__)
    'ping -c 2 10.0.2.1'
    >>> with_addresses("ping -c 2 '2'", addresses, addresses.__getitem__)
    'ping -c 2 10.0.9.1'

    """

    def replaced(word: str) -> str:
        host = host_in(word, hosts)
        return word if host is None else address(host)

    return " ".join(map(replaced, words.split(" ")))


def quoting_notes(
    hosts: Iterable[str], switches: Iterable[str], commands: Collection[str]
) -> list[str]:
    """Return what to know of names of nodes at the prompt, one line each; usually nothing."""
    hosts = [*hosts]
    nodes = [*hosts, *switches]
    notes = []
    if clashing := [name for name in nodes if name in commands]:
        notes.append(
            f"nodes with names of commands: {listed(clashing, _SHOWN)}: write them in quotes,"
            f" as in '{clashing[0]}' ip address"
        )
    if numbers := [name for name in hosts if name.isdigit()]:
        notes.append(
            f"hosts with numbers as names: {listed(numbers, _SHOWN)}: write them in quotes after"
            f" the program, as in {numbers[0]} ping '{numbers[-1]}'"
        )
    unusual = [name for name in nodes if name == "net" or not _is_variable(name)]
    if unusual:
        notes.append(
            f"names that are no variables in 'py' and 'px': {listed(unusual, _SHOWN)}: write"
            f" net['{unusual[0]}']"
        )
    return notes


def _is_variable(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)
