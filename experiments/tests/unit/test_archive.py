"""The archive of evidence: the same pages from it alone, and one line about what is wrong."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from knotless.base.package import CHECKOUT
from knotless.results.stored import read
from knotless_experiments.commands.reproduction import command
from knotless_experiments.reproduction import archive, page
from knotless_experiments.reproduction.archive import ArchiveError

PAGES = (CHECKOUT or Path()) / "docs" / "reproduction"
pytestmark = pytest.mark.skipif(CHECKOUT is None, reason="evidence is in the repository")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archive") / "evidence.tar.gz"
    assert archive.write(path) > 100
    return path


def changed(path: Path, old: bytes, new: bytes) -> Path:
    data = gzip.decompress(path.read_bytes())
    assert old in data
    assert len(old) == len(new)
    other = path.with_name("changed.tar.gz")
    other.write_bytes(gzip.compress(data.replace(old, new, 1)))
    return other


def test_the_same_files_give_the_same_archive(written: Path, tmp_path: Path) -> None:
    archive.write(tmp_path / "again.tar.gz")
    assert (tmp_path / "again.tar.gz").read_bytes() == written.read_bytes()


def test_the_figures_of_an_archive_are_those_of_the_page(written: Path) -> None:
    with archive.unpacked(written) as folder:
        assert page.table(read(folder)).encode() == (PAGES / "figures.csv").read_bytes()


@pytest.mark.deep
def test_the_pages_of_an_archive_are_those_of_its_runs(written: Path) -> None:
    with archive.unpacked(written) as folder:
        pages = page.pages(read(folder), folder)
    for name, text in pages.items():
        assert (PAGES.parent / name).read_bytes() == text.encode(), name


def test_the_manifest_has_the_commit_and_commands_are_there(written: Path) -> None:
    members = dict(archive._members(written))
    manifest = json.loads(members[archive.MANIFEST])
    assert manifest["commit"]
    assert manifest["files"].keys() == members.keys() - {archive.MANIFEST}
    assert b"knotless run deadlock" in members["COMMANDS.md"]


def test_a_changed_file_is_named(written: Path) -> None:
    other = changed(written, b'"experiment":"nas"', b'"experiment":"mas"')
    with pytest.raises(ArchiveError, match=r"nas-.*json is not the file that MANIFEST\.json lists"):
        archive.unpacked(other).__enter__()


def test_names_outside_of_the_archive_are_refused(written: Path) -> None:
    for name in ("../there", "/there"):
        written.with_name("outside.tar.gz").write_bytes(gzip.compress(archive._tar({name: b""})))
        with pytest.raises(ArchiveError, match="is no file inside of the archive"):
            archive.unpacked(written.with_name("outside.tar.gz")).__enter__()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "F.tar.gz"], "--from needs --out F.md"),
        (["--archive", "F.tar.gz", "--out", "F.md"], "give it alone"),
        (["--from", "there-is-none.tar.gz", "--out", "F.md"], "there-is-none.tar.gz"),
    ],
)
def test_options_that_do_not_fit_are_one_line(arguments: list[str], message: str) -> None:
    failed = CliRunner().invoke(command, arguments)
    assert message in str(failed.exception)
