from pathlib import Path

import pytest

from knotless.controller.config import Config, ConfigError, find, load_fabric, parse, read
from knotless.topologies import KnotlessError


def test_an_empty_file_means_the_defaults() -> None:
    assert parse("# nothing yet\n") == Config()


def test_all_keys_are_read() -> None:
    config = parse(
        "fabric: ring,4\nengine: dor\nvcs: 2\nselect: low-port\ntagging: host\nroot: s2\n"
        "vlans: tree\nconnect_timeout_s: 3\nrest: {host: 127.0.0.2, port: 8181}\n"
    )
    assert (config.fabric, config.engine, config.vcs) == ("ring,4", "dor", 2)
    assert (config.select, config.tagging, config.root) == ("low-port", "host", "s2")
    assert config.vlans == "tree"
    assert (config.connect_timeout_s, config.rest.host, config.rest.port) == (3, "127.0.0.2", 8181)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "fabrik: ring,4",
            [
                "unknown key 'fabrik'",
                "known are allow_deadlock, connect_timeout_s, controllers, discovery, emulator",
            ],
        ),
        ("rest: {prot: 1}", ["unknown key 'rest.prot'", "known are host, names, port"]),
        ("vcs: many", ["vcs: ", "'many'"]),
        ("vcs: 9", ["vcs: ", "9 is not at most 8"]),
        ("vcs: true", ["vcs: ", "True"]),
        ("vlans: forest", ["vlans: ", "'forest' is not one of 'default', 'tree'"]),
        ("select: widest", ["select: ", "'widest' is not one of 'spread', 'low-port'"]),
        ("rest: {port: 0}", ["rest.port: ", "0 is not at least 1"]),
        ("rest: 8080", ["rest: ", "8080"]),
        ("fabric: [ring, 4]", ["fabric: ", "string"]),
        ("- fabric\n- engine", ["must have keys with values"]),
        ("fabric: {", ["line 1", "not YAML"]),
        ("fabric: \x00", ["not YAML"]),
        ("? [1, {a: b}]\n: 2", ["not YAML"]),
    ],
)
def test_a_mistake_gets_one_line_with_the_key(text: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text)
    line = str(caught.value)
    assert "\n" not in line
    assert len(line) < 400
    for word in words:
        assert word in line


def test_the_file_is_named_in_the_line(tmp_path: Path) -> None:
    path = tmp_path / "lab.yaml"
    path.write_text("colour: red\n")
    with pytest.raises(ConfigError, match=rf"^{path}: unknown key 'colour'"):
        read(path)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "lab.yaml"
    path.write_bytes(b"fabric: \xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8"):
        read(path)


def test_the_variable_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find({}) is None
    Path("knotless.yaml").write_text("")
    assert find({}) == Path("knotless.yaml")
    other = tmp_path / "other.yaml"
    with pytest.raises(ConfigError, match=r"other\.yaml: no such file \(KNOTLESS_CONFIG names it"):
        find({"KNOTLESS_CONFIG": str(other)})
    other.write_text("")
    assert find({"KNOTLESS_CONFIG": str(other)}) == other


def test_a_fabric_file_is_looked_for_beside_the_configuration(tmp_path: Path) -> None:
    path = tmp_path / "lab.yaml"
    with pytest.raises(KnotlessError) as caught:
        load_fabric(Config(fabric="mine.json"), path)
    line = str(caught.value)
    assert line.startswith(f"{path}: fabric: ")
    assert str(tmp_path / "mine.json") in line
    assert "\n" not in line


def test_a_bad_spec_is_reported_with_its_key(tmp_path: Path) -> None:
    path = tmp_path / "lab.yaml"
    with pytest.raises(KnotlessError, match=rf"^{path}: fabric: "):
        load_fabric(Config(fabric="moebius,4"), path)


def test_the_default_fabric_loads() -> None:
    assert len(load_fabric(Config(), None).switches) == 16
