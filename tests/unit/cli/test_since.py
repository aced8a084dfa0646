"""``check --since``: what it uses of a state, what it refuses, and what it says then."""

from __future__ import annotations

import json
import random
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from knotless.base.sections import Sections, write_sections
from knotless.cli.main import main
from knotless.importers import manifest
from tests.support.fabric_edits import Folder, buffered, member_removed, write_files
from tests.support.router_nets import clos, leaf_spine

FULL = "all is checked"
RESTS = "knotless: the verdict rests on "


def check(*words: object) -> tuple[int, str, str]:
    """Return the exit status, standard output and standard error."""
    result = CliRunner(mix_stderr=False).invoke(
        main, ["check", *map(str, words)], catch_exceptions=False
    )
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def fabric(tmp_path: Path) -> Path:
    """Return the files of a small fabric."""
    return write_files(buffered(clos(2, 2, 2, 2)), tmp_path / "my-fabric")


@pytest.fixture
def state(fabric: Path, tmp_path: Path) -> Path:
    """Return the state of a check of it."""
    path = tmp_path / "fabric.state"
    assert check(fabric, "--write-state", path)[0] == 0
    return path


def changed(fabric: Path) -> None:
    """Remove a next hop of a route."""
    member_removed(Folder(fabric, random.Random(7)))  # noqa: S311


def as_in_full(fabric: Path, state: Path, *options: str) -> str:
    """Compare ``--since`` with a full check; return what it says besides."""
    full = check(fabric, *options, "--json")
    since = check(fabric, "--since", state, *options, "--json")
    assert since[:2] == full[:2]
    is_full = FULL in since[2]
    rests = [line for line in since[2].splitlines(keepends=True) if RESTS in line]
    assert len(rests) == (not is_full), "it is said if the verdict rests on the state"
    return since[2] if is_full else since[2].replace(rests[0], "")


def test_nothing_has_changed(fabric: Path, state: Path) -> None:
    assert as_in_full(fabric, state) == ""
    assert check(fabric)[1] == check(fabric, "--since", state)[1]


def test_a_next_hop_less_is_checked_from_the_state(fabric: Path, state: Path) -> None:
    changed(fabric)
    assert as_in_full(fabric, state) == ""


def test_tables_that_no_verdict_depends_on(fabric: Path, state: Path) -> None:
    """A note names the tables, so that only one that was there may change."""
    file = fabric / "core0-0" / "config_db.json"
    tables = json.loads(file.read_text())
    tables["SYSLOG_SERVER"]["10.0.0.9"] = {"port": "514"}
    file.write_text(json.dumps(tables))
    assert as_in_full(fabric, state) == ""
    tables["NTP_SERVER"] = {"10.0.0.9": {}}
    file.write_text(json.dumps(tables))
    assert FULL in as_in_full(fabric, state)


@pytest.mark.parametrize("switch", ["pod0-leaf0", "pod1-agg1", "core1-0"])
def test_one_wrong_route_anywhere_is_found(fabric: Path, state: Path, switch: str) -> None:
    """Every route of these switches to another one, sent back to where its packets come from."""
    file = fabric / switch / "appl_db.json"
    former = file.read_text()
    ports = {port for fields in json.loads(former).values() for port in fields["ifname"].split(",")}
    wrong = 0
    for key, fields in json.loads(former).items():
        others = sorted(ports - {*fields["ifname"].split(","), "Vlan10"})
        if fields["ifname"] == "Vlan10" or not others:
            continue
        tables = json.loads(former)
        tables[key] = {"nexthop": "169.254.0.9", "ifname": others[0]}
        file.write_text(json.dumps(tables))
        status, printed, _ = check(fabric, "--since", state, "--json")
        assert (status, printed) == check(fabric, "--json")[:2]
        wrong += status == 1
    file.write_text(former)
    assert wrong or switch == "pod0-leaf0"
    assert as_in_full(fabric, state) == ""


@pytest.mark.thin(2)
@pytest.mark.parametrize("switch", range(6))
def test_a_withdrawn_route_anywhere_is_found(tmp_path: Path, switch: int) -> None:
    net = leaf_spine(4, 2)
    fabric, state = write_files(net, tmp_path / "my-fabric"), tmp_path / "state"
    assert check(fabric, "--write-state", state)[0] == 0
    name = net.routers[switch]
    for prefix in net.routes[name]:
        tables = net.appl_routes(name)
        del tables[f"ROUTE_TABLE:{prefix}"]
        (fabric / name / "appl_db.json").write_text(json.dumps(tables))
        assert check(fabric, "--since", state)[0] == 1
        as_in_full(fabric, state)


def test_findings_for_code_review_are_the_same(fabric: Path, state: Path, tmp_path: Path) -> None:
    changed(fabric)
    config = fabric / "core0-0" / "config_db.json"
    for file, option in (("full", ()), ("since", ("--since", state))):
        check(fabric, *option, "--sarif", tmp_path / f"{file}.sarif")
    assert (tmp_path / "since.sarif").read_text() == (tmp_path / "full.sarif").read_text()
    tables = json.loads(config.read_text())
    tables["BUFFER_PROFILE"]["lossless"]["xoff"] = "9"
    config.write_text(json.dumps(tables))
    check(fabric, "--since", state, "--sarif", tmp_path / "loss.sarif")
    found = json.loads((tmp_path / "loss.sarif").read_text())["runs"][0]["results"]
    assert "lossless-loss" in {result["ruleId"] for result in found}


def test_failures_are_part_of_a_state(fabric: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    assert check(fabric, "--failures", 1, "--write-state", state)[0] in (0, 1)
    assert as_in_full(fabric, state, "--failures", "1") == ""
    assert FULL in as_in_full(fabric, state)
    changed(fabric)
    assert FULL in as_in_full(fabric, state, "--failures", "1")


@pytest.mark.parametrize("options", [("--hosts", "x*"), ("--routes", "bgp"), ("--failures", "1")])
def test_a_state_of_other_options_is_not_used(
    fabric: Path, state: Path, options: tuple[str, ...]
) -> None:
    assert "the state of other" in check(fabric, "--since", state, *options)[2]


def test_a_state_of_another_folder_is_not_used(fabric: Path, state: Path) -> None:
    other = fabric.rename(fabric.with_name("other"))
    assert "the state of other paths and folders" in as_in_full(other, state)


def test_a_state_of_another_program_is_not_used(
    fabric: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("knotless.verification.check_state.program", lambda: "another")
    assert "written by another version of Knotless" in as_in_full(fabric, state)


def test_a_missing_state_and_one_that_is_none(fabric: Path, tmp_path: Path) -> None:
    assert "No such file or directory: all is checked" in as_in_full(fabric, tmp_path / "none")
    for content in (b"", b"{}", b"knotless sections 1\n", bytes(200)):
        (tmp_path / "other").write_bytes(content)
        assert FULL in as_in_full(fabric, tmp_path / "other")


def test_a_damaged_state_is_not_used(fabric: Path, state: Path) -> None:
    changed(fabric)
    whole, rng = state.read_bytes(), random.Random(3)  # noqa: S311
    full = check(fabric, "--json")
    seen = set()
    for _ in range(40):
        data = bytearray(whole)
        if rng.random() < 0.3:
            del data[rng.randrange(len(data)) :]
        else:
            data[rng.randrange(len(data))] ^= rng.randrange(1, 256)
        state.write_bytes(data)
        since = check(fabric, "--since", state, "--json")
        assert since[:2] == full[:2]
        seen.add(FULL in since[2])
    assert True in seen


@pytest.mark.deep
def test_no_section_of_a_forged_state_ends_the_program(fabric: Path, state: Path) -> None:
    """Sections of any content, with hashes that fit."""
    changed(fabric)
    forged, rng = Sections(state), random.Random(5)  # noqa: S311
    sections = {name: bytes(forged.part(name)) for name in forged.names}
    about = sections["about"]
    for name, content in sections.items():
        noise = bytes(rng.randrange(256) for _ in range(min(len(content), 4000)))
        short = content[: len(content) // 2]
        for other in (
            b"",
            b"{}",
            b"[]",
            b"null",
            short,
            noise + content[len(noise) :],
            b"\xff" * 64,
        ):
            write_sections(
                state, {**sections, name: other, **({} if name == "about" else {"about": about})}
            )
            status, printed, _ = check(fabric, "--since", state, "--json")
            assert status in (0, 1)
            assert json.loads(printed)["fabric"] == "my-fabric"


def test_rehash_compares_what_times_do_not_show(
    fabric: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest, "_status", lambda _: (1, 1, 1, 1, 1))
    state = tmp_path / "state"
    before = check(fabric, "--write-state", state, "--json")
    (fabric / "core0-0" / "appl_db.json").write_text("{}")
    assert check(fabric, "--since", state, "--json")[:2] == before[:2]
    since = check(fabric, "--since", state, "--rehash", "--json")
    assert since[:2] == check(fabric, "--json")[:2] != before[:2]


def test_a_file_that_is_written_again_is_compared(fabric: Path, state: Path) -> None:
    for file in fabric.rglob("*.json"):
        file.write_bytes(file.read_bytes())
    assert as_in_full(fabric, state) == ""


def test_a_link_to_other_files_is_followed(fabric: Path, tmp_path: Path) -> None:
    """Where a file really is names its switch if nothing else does."""
    target = tmp_path / "elsewhere"
    target.mkdir()
    link = fabric / "core0-0" / "appl_db.json"
    (target / "appl_db.json").write_bytes(link.read_bytes())
    link.unlink()
    link.symlink_to(target / "appl_db.json")
    state = tmp_path / "state"
    check(fabric, "--write-state", state)
    assert as_in_full(fabric, state) == ""
    target.rename(tmp_path / "moved")
    link.unlink()
    link.symlink_to(tmp_path / "moved" / "appl_db.json")
    assert FULL in as_in_full(fabric, state)


@pytest.mark.parametrize(
    "options", [("--pair", "h1", "h2"), ("--draw", "f.svg"), ("--remedies",), ("--export", "x")]
)
def test_what_needs_more_than_a_verdict_is_refused(
    fabric: Path, state: Path, options: tuple[str, ...]
) -> None:
    for option in ("--since", "--write-state"):
        status, _, said = check(fabric, option, state, *options)
        assert (status, said) == (
            2,
            f"knotless: {option} is for verdicts, not with {options[0]}\n",
        )


def test_only_a_state_is_replaced_by_a_state(fabric: Path, state: Path) -> None:
    assert check(fabric, "--write-state", state)[0] == 0
    config = next(fabric.rglob("*.json"))
    before = config.read_bytes()
    status, printed, said = check(fabric, "--write-state", config)
    assert (status, printed, config.read_bytes()) == (2, "", before)
    assert said == (
        f"knotless: {config} is no state of a check, and is not replaced: name another file\n"
    )


def test_options_that_need_others_and_rules_of_ours_are_refused(tmp_path: Path) -> None:
    assert check("x", "--rehash")[0] == 2
    assert check("x", "--since", "a", "--write-state", "b")[0] == 2
    rules = tmp_path / "rules"
    CliRunner().invoke(main, ["flows", "ring,4", "--out", str(rules)])
    status, _, said = check(rules, "--write-state", tmp_path / "state")
    assert (status, "--write-state is for the files of real fabrics" in said) == (2, True)
    assert not (tmp_path / "state").exists()


def test_a_state_is_its_owners_also_in_place_of_one_that_was_not(
    fabric: Path, tmp_path: Path
) -> None:
    path = tmp_path / "fabric.state"
    for before in (None, 0o644):
        if before is not None:
            path.chmod(before)
        assert check(fabric, "--write-state", path)[0] == 0
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_bytes(bytes(range(32)))
    return path


def test_a_state_with_a_key_counts_with_that_key_only(
    fabric: Path, tmp_path: Path, key: Path
) -> None:
    path, other = tmp_path / "fabric.state", tmp_path / "other"
    other.write_bytes(bytes(range(1, 33)))
    assert check(fabric, "--write-state", path, "--state-key", key)[0] == 0
    changed(fabric)
    since = check(fabric, "--since", path, "--state-key", key)
    assert f"{path}, written with the key" in since[2]
    assert since[:2] == check(fabric)[:2]
    for words in ((), ("--state-key", other)):
        assert FULL in check(fabric, "--since", path, *words)[2]


def test_a_state_that_was_changed_by_who_has_no_key_does_not_count(
    fabric: Path, tmp_path: Path, key: Path
) -> None:
    """All its hashes are right, but not keyed."""
    path = tmp_path / "fabric.state"
    assert check(fabric, "--write-state", path)[0] == 0
    with Sections(path) as sections:
        forged = {name: bytes(sections.view(name)) for name in sections.names}
    forged["found"] = forged["found"].replace(b'"pairs": 1', b'"pairs": 2', 1)
    write_sections(path, forged)
    assert RESTS in check(fabric, "--since", path)[2]
    assert FULL in check(fabric, "--since", path, "--state-key", key)[2]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--state-key", "KEY"], "--state-key is for --write-state and --since"),
        (["--since", "x", "--state-key", "SHORT"], "a key has at least 16 bytes: 'head -c 32"),
        (["--since", "x", "--state-key", "MISSING"], "No such file"),
    ],
)
def test_a_key_that_is_none(
    fabric: Path, tmp_path: Path, key: Path, words: list[str], reason: str
) -> None:
    (tmp_path / "short").write_bytes(b"0123456789")
    files = {"KEY": key, "SHORT": tmp_path / "short", "MISSING": tmp_path / "missing"}
    status, _, errors = check(fabric, *(files.get(word, word) for word in words))
    assert status == 2
    assert reason in errors
    assert len(errors.splitlines()) == 1
