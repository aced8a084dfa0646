"""``knotless reproduction``: the pages that are generated from stored runs."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click

from knotless.base.counting import counted
from knotless.base.errors import KnotlessError
from knotless.base.files import folder_for_files, read_text, write_all
from knotless.base.package import CHECKOUT
from knotless.cli.answer import Answer, Headline, print_answer
from knotless.cli.options import json_option, print_json
from knotless.results import stored
from knotless.results.document import whose_rows_may_not_fit
from knotless.results.page_parts import PartError
from knotless_experiments.reproduction import archive as evidence
from knotless_experiments.reproduction import inserts, page
from knotless_experiments.studies.agreement import page as agreement

DEFAULT_PAGE = (CHECKOUT or Path()) / "docs" / "reproduction.md"
AGREEMENT = "agreement.md"
"""The page, in the same folder, that compares the emulator with the simulator."""


@click.command(name="reproduction")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--stored", "folder", metavar="DIR", help="Folder of stored runs (experiments/).")
@click.option("--out", metavar="F.md", help="The page to write (docs/reproduction.md).")
@click.option("--archive", metavar="F.tar.gz", help="Only write an archive of all evidence.")
@click.option(
    "--from",
    "source",
    metavar="F.tar.gz",
    help="Write the pages from such an archive; needs --out.",
)
@json_option
def command(
    runs: tuple[str, ...],
    folder: str | None,
    out: str | None,
    archive: str | None,
    source: str | None,
    as_json: bool,
) -> None:
    """Store each RUN (a folder of results), then write the page from all stored runs.

    A folder reproduction/ beside it has a page and plots for each paper, and all figures as CSV;
    agreement.md compares the emulator with the simulator. Figures in other pages beside it, such
    as barriers.md, are rewritten too.

    Example: knotless reproduction results/traffic-20261121T080513Z-5298
    """
    if archive is not None:
        _write_archive(archive, as_json, runs, folder, out, source)
        return
    if source is not None:
        if runs or folder or not out:
            raise KnotlessError("--from needs --out F.md, and takes no runs and no --stored")
        with evidence.unpacked(Path(source)) as unpacked:
            _write_pages(unpacked, out, [], as_json, unpacked)
        return
    where = stored.FOLDER if folder is None else Path(folder)
    kept = [str(stored.keep(Path(run), where)) for run in runs]
    _write_pages(where, out, kept, as_json, stored.FOLDER)


def _write_archive(archive: str, as_json: bool, *others: object) -> None:
    if any(others):
        raise KnotlessError("--archive writes what is stored: give it alone")
    count = evidence.write(Path(archive))
    if as_json:
        print_json({"archive": archive, "files": count})
    else:
        print_answer(Answer(Headline(archive, "written", f"with {counted(count, 'files')}")))


def _write_pages(
    where: Path, out: str | None, kept: list[str], as_json: bool, chosen: Path
) -> None:
    """Write the pages of the runs in ``where``; ``chosen`` has those of chosen settings."""
    stored_runs = stored.read(where)
    path = str(DEFAULT_PAGE if out is None else Path(out))
    with whose_rows_may_not_fit(str(where), stored.StoredError):
        pages: dict[Path, str | bytes] = {
            Path(path).parent / name: text for name, text in page.pages(stored_runs, chosen).items()
        }
        pages[Path(path)] = pages.pop(Path(path).parent / page.OVERVIEW)
        pages[Path(path).with_name(AGREEMENT)] = agreement.text(stored_runs)
        for name in inserts.PAGES:
            held = Path(path).with_name(name)
            if held.exists():
                pages[held] = inserts.written(read_text(held, PartError), stored_runs)
    with ExitStack() as folders:
        for folder_of in {name.parent for name in pages}:
            folders.enter_context(folder_for_files(folder_of, stored.StoredError))
        write_all(pages)
    if as_json:
        print_json({"page": path, "stored": kept, "runs": len(stored_runs.runs)})
    else:
        of_runs, others = counted(len(stored_runs.runs), "runs"), counted(len(pages) - 1, "others")
        rest = f"from {of_runs}, with {others}"
        print_answer(Answer(Headline(path, "written", rest)))
