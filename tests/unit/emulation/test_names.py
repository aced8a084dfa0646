"""Names of running fabrics: they do not collide, and stay in their folder and namespaces."""

from pathlib import Path

import pytest

from knotless.base.errors import KnotlessError
from knotless.emulation import names as naming
from knotless.emulation.names import names_of, running_names


@pytest.mark.parametrize(
    "name", ["", "A", "a/b", "..", "a.b", "-a", "a" * 25, "x-links", "a b", "a\n", "ä"]
)
def test_a_name_that_could_meet_another_is_refused(name: str) -> None:
    with pytest.raises(KnotlessError, match="--name"):
        names_of(name)


def test_names_of_two_fabrics_never_meet() -> None:
    spaces: dict[str, str] = {}
    for name in ("a", "a-h1", "a-h1-b", "b", "a" * 24):
        names = names_of(name)
        for space in (
            names.switches_namespace(),
            names.switches_namespace(1),
            names.links_namespace,
            names.host_namespace("h1"),
            names.host_namespace("2"),
            names.host_namespace("links"),
            names.host_namespace("h1-links"),
        ):
            assert space not in spaces, f"{space} is of {spaces.get(space)} and {name}"
            spaces[space] = name


def test_sockets_fit_in_a_unix_address() -> None:
    names = names_of("a" * 24)
    for path in (names.emulator_socket, names.controller_socket(8)):
        assert len(str(path)) < 108
    assert len(str(names.ovs_directory / "ovs-vswitchd.4194304.ctl")) < 108


def test_other_files_beside_the_fabrics_are_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The link emulators' credit is in .nic: 'status' does not show it, 'down' keeps it."""
    monkeypatch.setattr(naming, "RUN_DIRECTORY", tmp_path)
    for name in ("lab", ".nic"):
        (tmp_path / name).mkdir()
    (tmp_path / "lock").touch()
    assert running_names() == ["lab"]
    with pytest.raises(KnotlessError, match="--name"):
        names_of(".nic")
