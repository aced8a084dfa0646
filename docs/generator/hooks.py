"""The hooks of mkdocs.yml: generated pages are added, and the commands on pages are run.

Needs the repository's folder on the path: ``python -m mkdocs build``.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docs.generator import pages, shell
from knotless.results import stored

ROOT = Path(__file__).resolve().parents[2]


def sheets() -> list[str]:
    """Return the sheets of all labs, in their order."""
    return sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("labs/*/README.md"))


COPIED = {
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "tests/README.md": "tests/README.md",
    **{name: name for name in ("labs/README.md", *sheets())},
    "sweeps/torus-load.yaml": "experiments/sweeps/torus-load.yaml",
    "monitoring/alerts.yaml": "controller/monitoring/alerts.yaml",
    "monitoring/grafana-controller.json": "controller/monitoring/grafana-controller.json",
    **{f"runs/{path.name}": str(path.relative_to(ROOT)) for path in stored.files()},
}
"""Files of the site that are elsewhere in the repository."""
LINKS = {
    "agreement.md": [("](../experiments)", "](runs/index.md)")],
    "index.md": [("](../labs/", "](labs/"), ("](../CONTRIBUTING.md", "](contributing.md")],
    "maintaining.md": [("](../tests/README.md", "](tests/README.md")],
    "reproduction.md": [("](../experiments)", "](runs/index.md)")],
    "reproduction/runs.md": [("](../../experiments)", "](../runs/index.md)")],
    "runbook.md": [("](../controller/monitoring/", "](monitoring/")],
    "web.md": [("](../controller/monitoring/", "](monitoring/")],
    "sweeps.md": [("](../experiments/sweeps/", "](sweeps/")],
    "contributing.md": [("](docs/", "](")],
    "changelog.md": [("](docs/", "](")],
    "teaching.md": [("](../labs/", "](labs/")],
    "labs/README.md": [("](../docs/", "](../")],
    **{sheet: [("](../../docs/", "](../../")] for sheet in sheets()},
}
"""Links that lead elsewhere on the site than in the repository."""
_CODE = re.compile(r"<code>[^<]*</code>")
_ROLE = re.compile(r":(?:func|class|mod|meth|data|attr):(<code>)~?")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages and drawings, and the pages that are copied."""
    made: dict[str, str] = dict(pages.texts())
    made |= {name: (ROOT / source).read_text() for name, source in COPIED.items()}
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_others: Any) -> str:
    """Correct links, and run the commands of the page."""
    path = page.file.src_uri
    for name, source in COPIED.items():
        markdown = markdown.replace(f"](../../{source}", f"](../{name}")
    for old, new in LINKS.get(path, ()):
        markdown = markdown.replace(old, new)
    with tempfile.TemporaryDirectory() as folder:
        return shell.executed(markdown, Path(folder), path)


def on_page_content(html: str, **_others: Any) -> str:
    """Show the cross-references of docstrings as code, and escaped bars in code as bars."""
    return _CODE.sub(lambda code: code[0].replace("\\|", "|"), _ROLE.sub(r"\1", html))
