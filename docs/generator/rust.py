"""The reference of the Rust crates: what each is for, and its public modules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

CORE = Path(__file__).resolve().parents[2] / "core"
HEAD = """# Rust API

The switch model, the simulator, the link emulator, the forwarding state and the graph work are Rust
crates in `core/`. Their documentation is rustdoc:

```sh
cargo doc --manifest-path core/Cargo.toml --no-deps --open
```

This overview is generated from the crates.
"""
_DOCUMENTED = re.compile(r"^//! ?(.*)$", re.MULTILINE)
_PUBLIC = re.compile(r"^pub mod (\w+);", re.MULTILINE)
_LINK = re.compile(r"\[(`[^`\]]+`)\](?:\([^)]*\))?")


def page() -> str:
    """Return the page."""
    return "\n".join([HEAD, *(line for crate in crates() for line in _section(crate))])


def crates() -> list[Path]:
    """Return the folders of all crates that are libraries."""
    files = [*CORE.glob("*/src/lib.rs"), *CORE.glob("messages/*/src/lib.rs")]
    return sorted(path.parents[1] for path in files)


def _section(crate: Path) -> Iterator[str]:
    text = (crate / "src" / "lib.rs").read_text()
    yield f"## {crate.name}\n"
    yield "\n\n".join(_paragraphs(text)) + "\n"
    modules = _PUBLIC.findall(text)
    if modules:
        yield "| module | |\n|---|---|"
        yield "\n".join(f"| `{name}` | {_summary(crate, name)} |" for name in modules) + "\n"


def _paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a module's documentation before its first heading or table."""
    documented = _LINK.sub(r"\1", "\n".join(_DOCUMENTED.findall(text)))
    before = re.split(r"^(?:#|\||```)", documented, maxsplit=1, flags=re.MULTILINE)[0]
    return [" ".join(part.split()) for part in before.split("\n\n") if part.strip()]


def _summary(crate: Path, module: str) -> str:
    """Return the first paragraph of a module's documentation."""
    for path in (crate / "src" / f"{module}.rs", crate / "src" / module / "mod.rs"):
        if path.is_file():
            found = _paragraphs(path.read_text())
            return found[0].replace("|", "\\|") if found else ""
    return ""
