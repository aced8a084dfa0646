"""``report.html``: a self-contained page made from a run's folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from knotless.base.files import write_whole
from knotless.base.printable import html_text
from knotless.results.results import read
from knotless_experiments.framework.excluded_runs import without_virtual_time
from knotless_experiments.framework.experiment import EMULATION, Experiment, Presentation

if TYPE_CHECKING:
    import jinja2

    from knotless_experiments.framework.compare import Line

TEMPLATES = Path(__file__).resolve().parent / "templates"
ONLY_EMULATED = ("ryu", "mininet", "ovs", "iperf3")
"""Components that no run uses but an emulated one, by their key in the versions of a run."""


def _environment() -> jinja2.Environment:
    import jinja2
    from markupsafe import Markup

    def shown(value: object) -> object:
        """Show text by its function, line by line; what is HTML already stays."""
        if not isinstance(value, str) or isinstance(value, Markup):
            return value
        return Markup("\n".join(map(html_text, value.split("\n"))))  # noqa: S704 - it escapes

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render_comparison(runs: Sequence[Mapping[str, Any]], lines: Sequence[Line]) -> str:
    """Return the page that compares runs of one experiment."""
    # Runs of experiments with only one place do not record it.
    shown = [{**run, "parameters": {"on": None, **run["parameters"]}} for run in runs]
    template = _environment().get_template("comparison.html.j2")
    return template.render(runs=shown, lines=lines)


def render(run: Mapping[str, Any], shown: Presentation, svgs: Mapping[str, str]) -> str:
    """Return the page; ``svgs`` holds the plots' ``<svg>`` elements by name."""
    from markupsafe import Markup

    # The SVG is Matplotlib's output, in which all text is escaped or drawn as paths.
    inline = {name: Markup(svg) for name, svg in svgs.items()}  # noqa: S704
    unused = () if run["parameters"].get("on", EMULATION) == EMULATION else ONLY_EMULATED
    versions = {name: text for name, text in run["versions"].items() if name not in unused}
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            run={**run, "versions": versions},
            shown=shown,
            svgs=inline,
            parameters=json.dumps(run["parameters"], indent=2),
        )
    )


def make(directory: Path, experiment: Experiment) -> tuple[Path, Presentation]:
    """Draw the plots and write the report of a run's folder; return its path and content.

    Works on any folder that :func:`knotless.results.results.read` can read, however the run ended.
    """
    import matplotlib as mpl

    from knotless.results import plots

    run, samples = read(directory)
    with mpl.rc_context({**plots.STYLE, **plots.TEXT_AS_TEXT}):
        shown = experiment.present(run, samples, True)
        note = without_virtual_time(run["rows"])
        shown = replace(shown, sentences=[*shown.sentences, *note])
        svgs = {plot.name: plots.save(plot.figure, directory, plot.name) for plot in shown.plots}
    path = directory / "report.html"
    write_whole(path, render(run, shown, svgs))
    return path, shown
