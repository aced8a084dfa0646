"""``report.html``: one file that needs no other, made from a run's folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.experiment import Experiment, Presentation
from experiments.results import read

TEMPLATES = Path(__file__).resolve().parent / "templates"


def render(run: Mapping[str, Any], shown: Presentation, svgs: Mapping[str, str]) -> str:
    """Return the page; ``svgs`` holds the plots' ``<svg>`` elements by name."""
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # The SVG is matplotlib's own output, in which all text is escaped or drawn as paths.
    inline = {name: Markup(svg) for name, svg in svgs.items()}  # noqa: S704
    return environment.get_template("report.html.j2").render(
        run=run, shown=shown, svgs=inline, parameters=json.dumps(run["parameters"], indent=2)
    )


def make(directory: Path, experiment: Experiment) -> tuple[Path, Presentation]:
    """Draw the plots and write the report of a run's folder; returns its path, and what it shows.

    Works on any folder that :func:`experiments.results.read` can read, however the run ended.
    """
    import matplotlib as mpl

    from experiments import plots

    run, samples = read(directory)
    with mpl.rc_context(plots.STYLE):
        shown = experiment.present(run, samples, True)
        svgs = {plot.name: plots.save(plot.figure, directory, plot.name) for plot in shown.plots}
    path = directory / "report.html"
    path.write_text(render(run, shown, svgs), encoding="utf-8")
    return path, shown
