"""Lines of the prompt that name nodes, whatever their names."""

from __future__ import annotations

import pytest

from knotless.cli.prompt_nodes import node_and_words, quoting_notes, with_addresses

COMMANDS = ("net", "py", "exit", "sh", "status")
NODES = ("h1", "h1-1", "New.York", "net", "py", "0", "class", "x")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("h1 ping h2", ("h1", "ping h2")),
        ("h1-1 ping h2", ("h1-1", "ping h2")),
        ("New.York ip route", ("New.York", "ip route")),
        ("0 ping '1'", ("0", "ping '1'")),
        ("class id", ("class", "id")),
        ("x id", ("x", "id")),
        ("net", None),
        ("'net' ip address", ("net", "ip address")),
        ('"py" id', ("py", "id")),
        ("py 1 + 1", None),
        ("'h1' id", ("h1", "id")),
        ("h1", ("h1", "")),
        ("h2 id", None),
        ("'h1", None),
        ("'' id", None),
        ("", None),
        ("   ", None),
    ],
)
def test_a_line_begins_with_a_node_unless_a_command_has_its_name(
    line: str, expected: tuple[str, str] | None
) -> None:
    assert node_and_words(line, NODES, COMMANDS) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("ping -c 1 h1", "ping -c 1 A"),
        ("ping -c 1 '1'", "ping -c 1 B"),
        ('ping -c 1 "1"', "ping -c 1 B"),
        ("echo 'h1'", "echo 'h1'"),
        ("echo h1,", "echo h1,"),
        ("echo   h1", "echo   A"),
        ("echo ''", "echo ''"),
    ],
)
def test_names_of_hosts_become_addresses_and_numbers_stay(words: str, expected: str) -> None:
    addresses = {"h1": "A", "1": "B"}
    assert with_addresses(words, addresses, addresses.__getitem__) == expected


def test_only_names_that_need_it_are_noted() -> None:
    assert quoting_notes(["h1", "h2"], ["s1", "London"], COMMANDS) == []
    notes = quoting_notes(["0", "net", "h1"], ["New.York", "class"], COMMANDS)
    assert notes == [
        "nodes with names of commands: net: write them in quotes, as in 'net' ip address",
        "hosts with numbers as names: 0: write them in quotes after the program, as in 0 ping '0'",
        "names that are no variables in 'py' and 'px': 0, net, New.York, class: write net['0']",
    ]
