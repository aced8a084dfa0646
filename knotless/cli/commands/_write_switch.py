"""The option that writes the settings of imported switches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from knotless.base.errors import KnotlessError
from knotless.base.printable import listed

if TYPE_CHECKING:
    from knotless.importers.fabric import ImportedFabric

write_switch_option = click.option(
    "--write-switch",
    metavar="F.yaml",
    help="Write the settings that SONiC switches have to this file, for --switch.",
)


def write_switches(imported: ImportedFabric, path: str) -> list[str]:
    """Write the settings of an imported fabric; return lines for people.

    Raises KnotlessError if no switch has settings, or the file cannot be written.
    """
    # These load pydantic.
    from knotless.base import switch_settings
    from knotless.importers.fabric import TableFabric
    from knotless.importers.switch_settings import ReadSettings, file_of

    settings = imported.switch_settings() if isinstance(imported, TableFabric) else {}
    known = [name for name, read in settings.items() if read != ReadSettings()]
    if not known:
        raise KnotlessError(
            f"--write-switch: no switch of {imported.fabric.name} has tables of SONiC with settings"
            " (BUFFER_POOL, BUFFER_PG, SCHEDULER, PFC_WD, PORT_QOS_MAP)"
        )
    file, unknown = file_of(settings)
    switch_settings.write(Path(path), file, unknown)
    lines = [f"settings of {listed(known, 3)} written to {path}"]
    if unknown:
        lines.append(f"{len(unknown)} facts are not known, and left out: its comments list them")
    return lines
