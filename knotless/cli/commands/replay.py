"""``knotless replay``: a stored run, or a verdict, as a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from knotless.base.counting import counted
from knotless.base.errors import KnotlessError
from knotless.base.files import write_whole
from knotless.base.flow_control import AUTO
from knotless.cli.answer import Answer, Headline, print_answer
from knotless.cli.commands._page import page_options, serve_page
from knotless.cli.numbers import Whole
from knotless.cli.output import say, say_json
from knotless.results import recording
from knotless.results.recording import SUFFIX, file_of_row

if TYPE_CHECKING:
    from knotless.topologies.fabric import Fabric

EXAMPLE = f"""\b
Example: knotless simulate ring,4 --engine dor --vcs 1 --select low-port \\
             --pattern shift:2 --record ring{SUFFIX}
         knotless replay ring{SUFFIX}
         knotless replay results/deadlock-20261122T200102Z-0a1b --row 3
         knotless replay ring{SUFFIX} --html ring.html
         knotless replay rules        # a verdict, as knotless check
"""


@click.command("replay", epilog=EXAMPLE)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--row",
    type=Whole(min=0),
    metavar="N",
    help="Of knotless run --record: the row of the run (default: the first that was recorded).",
)
@click.option(
    "--html",
    "file",
    metavar="FILE",
    help="Write a recording as one HTML file that needs no server, instead of serving a page.",
)
@page_options
def command(
    paths: tuple[str, ...],
    row: int | None,
    file: str | None,
    host: str,
    port: int,
    public_origin: tuple[str, ...],
    as_json: bool,
) -> None:
    """Serve a page of a recorded run, or of a verdict, and print its address.

    PATH is a recording, or a folder with some, as of knotless run --record. Any other PATH is read
    as by knotless check; the page shows the verdict and its cycle. With --html a recording becomes
    one file, to be sent or to be put on a web site.
    """
    from knotless.web.replay import replay, verdict

    path = _recording(paths, row)
    if file is not None:
        if path is None:
            raise KnotlessError("--html is for a recording, a file *.channels.parquet")
        from knotless.web.page_file import page_file

        write_whole(file, page_file(recording.read(path)), KnotlessError)
        if as_json:
            say_json({"file": file})
        else:
            print_answer(Answer(Headline(file, "written", ", a page for any browser")))
        return
    source = verdict(*_verdict_on(paths)) if path is None else replay(recording.read(path))
    serve_page(source, source.feed, host, port, public_origin, as_json=as_json)


def _verdict_on(paths: tuple[str, ...]) -> tuple[Fabric, dict[str, object]]:
    """Return a fabric and the values of its verdict; ``paths`` are as of ``knotless check``."""
    # These load all of verification.
    from knotless.forwarding.openflow import directory
    from knotless.forwarding.openflow.reader import state_of_rules
    from knotless.importers.paths import read_paths
    from knotless.verification.check import verdict_of
    from knotless.verification.imported import verdict_of_imported

    if len(paths) > 1 or not directory.is_dir_of_rules(paths[0]):
        try:
            imported = read_paths(paths)
        except KnotlessError as error:
            raise KnotlessError(f"{error}; a recording is a file *{SUFFIX}") from None
        return imported.fabric, verdict_of_imported(imported).as_json()
    fabric, rules = directory.read_dir(paths[0])
    groups, tags = directory.read_multicast(fabric, paths[0]), directory.read_tags(fabric, paths[0])
    return fabric, verdict_of(state_of_rules(fabric, rules, groups, tags), AUTO).as_json()


def _recording(paths: tuple[str, ...], row: int | None) -> Path | None:
    """Return the recording that is named; None if there is none."""
    path = Path(paths[0])
    if len(paths) == 1 and path.is_dir():
        if row is not None:
            file = file_of_row(path, row)
            if not file.exists():
                raise KnotlessError(f"{path} has no recording of row {row}")
            return file
        inside = sorted(path.glob(f"*{SUFFIX}"), key=_order)
        if not inside and (path / "run.json").exists():
            raise KnotlessError(f"{path} holds no recording: knotless run makes some with --record")
        if len(inside) > 1:
            names = f"{inside[0].name} to {inside[-1].name}"
            say(f"the first of {counted(len(inside), 'recordings')}, {names}", err=True)
        return inside[0] if inside else None
    if row is not None:
        raise KnotlessError("--row is for the folder of a run")
    named = path.name.endswith(".parquet")
    if named and len(paths) > 1:
        raise KnotlessError("only one recording is replayed at a time")
    return path if named else None


def _order(file: Path) -> tuple[int, str]:
    """Return the place of a recording in a folder: rows by their number."""
    number = file.name.removeprefix("row-").removesuffix(SUFFIX)
    return int(number) if number.isdecimal() and len(number) < 10 else -1, file.name
