"""Files of claims: what an entry stands for, and that mistakes are one line with file and claim."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from knotless.cli.main import main
from knotless.results.spread import Spread
from knotless_experiments.reproduction import claims, claims_file
from knotless_experiments.reproduction.claim import Paper
from knotless_experiments.reproduction.claims import paper, papers
from knotless_experiments.reproduction.claims_file import ClaimsError

CLAIM: dict[str, Any] = {
    "each": [
        [{"name": "A", "fabric": "ring,4"}, {"name": "B", "fabric": "ring,6"}],
        [{"column": "max_switches", "theirs": 4}, {"column": "vlans", "theirs": "of {name}"}],
    ],
    "place": "Table {name}",
    "what": "{column} of {name}",
    "theirs": "{theirs}",
    "experiment": "paths",
    "ours": {"values": "{column}", "where": {"fabric": "{fabric}"}},
    "places": ["analysis"],
}


def written(folder: Path, claim: dict[str, Any], **others: Any) -> Path:
    path = folder / "koibuchi" / claims_file.NAME
    path.parent.mkdir(exist_ok=True)
    section = {"title": "One", "claims": [claim]}
    file = {"paper": "000", "title": "T", "sections": [section], **others}
    path.write_text(yaml.safe_dump(file), encoding="utf-8")
    return path


def read(folder: Path, claim: dict[str, Any], **others: Any) -> Paper:
    return claims_file.read(written(folder, claim, **others))


def test_an_entry_stands_for_every_combination_of_its_variables(tmp_path: Path) -> None:
    author_claims = read(tmp_path, CLAIM)
    assert (author_claims.author, author_claims.number) == ("koibuchi", "000")
    assert [(c.place, c.what, c.theirs) for c in author_claims.claims] == [
        ("Table A", "max_switches of A", 4),
        ("Table A", "vlans of A", "of A"),
        ("Table B", "max_switches of B", 4),
        ("Table B", "vlans of B", "of B"),
    ]
    rows = [{"fabric": "ring,4", "vlans": 2}, {"fabric": "ring,6", "vlans": 3}]
    assert author_claims.claims[3].compute(rows) == Spread(3.0, 3.0, 3.0, 1)


def test_exceptions_are_for_some_values_of_variables(tmp_path: Path) -> None:
    but = [
        {"when": {"name": ["A"], "column": "vlans"}, "theirs": "none", "digits": 0},
        {"when": {"name": "B"}, "omit": True},
    ]
    author_claims = read(tmp_path, {**CLAIM, "but": but})
    assert [(c.theirs, c.digits) for c in author_claims.claims] == [(4, 2), ("none", 0)]


def test_printed_figures_are_looked_up_and_divided(tmp_path: Path) -> None:
    lookup = {"table": "t", "keys": ["{name}", "x"]}
    claim = {**CLAIM, "theirs": {"ratio": [lookup, 8]}}
    author_claims = read(tmp_path, claim, printed={"t": {"A": {"x": 2}, "B": {"x": "nearly zero"}}})
    assert [c.theirs for c in author_claims.claims][::2] == [0.25, "nearly zero"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"theirs": None}, "theirs: "),
        ({"theirs": True}, "theirs: "),
        ({"theirs": {"ratio": [1, 0]}}, "theirs: 1 over 0 is no ratio"),
        ({"theirs": {"table": "t", "keys": ["A"]}}, "printed: there is no 't'"),
        ({"experiment": "walks"}, "experiment: must be one of all-to-all, "),
        ({"digits": 10}, "digits: "),
        ({"places": ["moon"]}, "places.0: "),
        ({"mark": "guessed"}, "mark: "),
        ({"wat": 1}, "unknown key 'wat'"),
        ({"what": "{nam}"}, "{nam}: there is no such variable in each"),
        ({"each": "x"}, "each: lists of variables are needed, not 'x'"),
        ({"each": [["x"]]}, "each: ['x'] is not a list of variables"),
        ({"but": [{"when": {"size": 1}}]}, "but: 'size' is no variable of each"),
        ({"but": [{"theirs": 1}]}, "0.when: it is missing"),
        ({"but": 3}, "input should be a valid list, not 3"),
        ({"theirs": {"table": "t", "keys": "A"}}, "keys: 'A' is not a list"),
        ({"ours": {"where": {}}}, "ours: one of values, ratio, slope, function is needed"),
        ({"ours": {"values": "swiches"}}, "ours: paths has no column 'swiches'"),
        ({"ours": {"values": "vlans", "where": {"fabrik": 1}}}, "no column 'fabrik'"),
        ({"ours": {"values": "vlans", "were": {}}}, "ours: unknown key 'were'"),
        ({"ours": {"ratio": "vlans", "above": {}, "below": {}}}, "ours: free: it is missing"),
        ({"ours": {"values": "vlans", "where": {"vcs": {}}}}, "vcs must be a value or a list"),
        ({"ours": {"function": "eval", "a": 1}}, "'eval' is no function of "),
        ({"ours": {"function": "saturated", "vcs": 2}}, "function 'saturated': missing a required"),
        (
            {"ours": {"function": "saturated", "vcs": "x", "select": True, "pick": "best"}},
            "ours: vcs: ",
        ),
    ],
)
def test_a_mistake_is_a_line_with_file_and_claim(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = written(tmp_path, {**CLAIM, **changes})
    with pytest.raises(ClaimsError) as caught:
        claims_file.read(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: claim '")
    assert "of section 'One': " in text
    assert message in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({"paper": 4}, "paper: "),
        ({"title": None}, "title: "),
        ({"headlines": [{"words": "W", "place": "Table A"}]}, "headline 'W': 2 claims have"),
        (
            {"headlines": [{"words": "W", "place": "Table A", "what": "vlans"}]},
            "headline 'W': agrees: it is missing",
        ),
        ({"sections": [{"title": "S", "plots": [{"name": "p"}]}]}, "sections.0.plots.0.caption"),
        (
            {"sections": [{"title": "S", "plots": [{"name": "p", "caption": "c", "draw": "x"}]}]},
            "plot 'p': 'x' is no function of ",
        ),
    ],
)
def test_a_mistake_outside_of_claims_is_a_line_with_the_file(
    others: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = written(tmp_path, CLAIM, **others)
    with pytest.raises(ClaimsError) as caught:
        claims_file.read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


def test_the_command_says_what_is_wrong_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, {**CLAIM, "digits": 10})
    monkeypatch.setattr(claims, "FOLDER", tmp_path)
    claims.papers.cache_clear()
    try:
        asked = ["reproduction", "--out", str(tmp_path / "page.md")]
        done = CliRunner(mix_stderr=False).invoke(main, asked)
    finally:
        claims.papers.cache_clear()
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert f"{path}: claim 'Table A', 'max_switches of A' of section 'One': digits: " in done.stderr
    assert not (tmp_path / "page.md").exists()


def test_a_paper_has_a_name_and_a_number() -> None:
    assert [(p.number, p.author) for p in papers()] == [
        ("000", "koibuchi"),
        ("001", "iwasaki"),
        ("002", "shimizu"),
        ("003", "yamamoto"),
        ("004", "otsuka"),
    ]
    assert paper("otsuka") is paper("004")
    with pytest.raises(ClaimsError, match=r"paper 'knuth': there are koibuchi \(000\), "):
        paper("knuth")
