"""``knotless replay``: a stored run, or a verdict, as a page."""

from __future__ import annotations

from pathlib import Path

import click

from common.errors import KnotlessError
from knotless.commands._page import page_options, serve_page
from runs import recording
from runs.recording import SUFFIX

EXAMPLE = f"""\b
Example: knotless simulate ring,4 --engine dor --vcs 1 --select low-port \\
             --pattern shift:2 --record ring{SUFFIX}
         knotless replay ring{SUFFIX}
         knotless replay rules        (a verdict, as knotless check)
"""


@click.command("replay", epilog=EXAMPLE)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@page_options
def command(paths: tuple[str, ...], host: str, port: int, as_json: bool) -> None:
    """Serve a page of a recorded run, or of a verdict, and print its address.

    PATH is a recording, or a folder with one. Any other PATH is read as by knotless check; the page
    shows the verdict and its cycle.
    """
    from web.replay import replay, verdict

    found = _recording(paths)
    if found is not None:
        source = replay(recording.read(found))
    else:
        from knotless.commands._verdict import verdict_on

        fabric, values = verdict_on(paths)
        source = verdict(fabric, values)
    serve_page(source, source.feed, host, port, as_json=as_json)


def _recording(paths: tuple[str, ...]) -> Path | None:
    """Return the recording that is named; None if there is none."""
    path = Path(paths[0])
    if len(paths) == 1 and path.is_dir():
        inside = sorted(path.glob(f"*{SUFFIX}"))
        if len(inside) > 1:
            names = ", ".join(file.name for file in inside[:4])
            raise KnotlessError(f"{path} holds {len(inside)} recordings: give one of {names}, ...")
        if not inside and (path / "run.json").exists():
            raise KnotlessError(f"{path} holds no recording: channels over time were not recorded")
        return inside[0] if inside else None
    named = path.name.endswith(".parquet")
    if named and len(paths) > 1:
        raise KnotlessError("only one recording is replayed at a time")
    return path if named else None
