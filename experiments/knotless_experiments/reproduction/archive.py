"""The archive of evidence: one file with all from which the pages of reproduction are made.

A tar archive, compressed with gzip, whose bytes depend on its contents alone: stored runs, claims
with their expectations, the commands that repeat them, stored benchmarks, the packages that were
locked, the citation, and a manifest with a SHA-256 of each file.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from knotless.base import archives
from knotless.base.errors import KnotlessError
from knotless.base.files import read_bytes, write_whole
from knotless.base.package import CHECKOUT, commit, version
from knotless.results.stored import FOLDER
from knotless_experiments.reproduction.claims import papers

MANIFEST, EXPERIMENTS = "MANIFEST.json", "experiments"
FORMAT = 1
MAX_FILE_BYTES = 1 << 28
EVIDENCE = (
    f"{EXPERIMENTS}/*/claims.yaml",
    f"{EXPERIMENTS}/*/runs/*.json",
    f"{EXPERIMENTS}/own/*.json",
    f"{EXPERIMENTS}/own/sensitivity/*.json",
    "docs/benchmarks/*.json",
    "docs/reproduction/figures.csv",
    "requirements.lock",
    "CITATION.cff",
    "LICENSE",
)
"""The files of a checkout that are evidence."""
README = """\
# Evidence of Knotless

Stored runs of experiments, the figures of five papers with which they are compared, what was
expected before runs (`expectation` in `claims.yaml`), and stored benchmarks. `MANIFEST.json` has
the commit at which this was collected, and a SHA-256 of each file. With Knotless of that commit

    knotless reproduction --from FILE --out pages/reproduction.md

writes the pages from this archive alone. `COMMANDS.md` has the commands that repeat the runs;
each run has its parameters, seed, commit, versions and machine.
"""


class ArchiveError(KnotlessError):
    """An archive that cannot be written or read, or that is not what its manifest says."""


def write(path: Path) -> int:
    """Write the archive of this checkout; return its number of files. Raises ArchiveError."""
    if CHECKOUT is None:
        raise ArchiveError(f"{path}: an archive is written from a checkout: clone the repository")
    names = sorted({name for pattern in EVIDENCE for name in CHECKOUT.glob(pattern)})
    files = {
        str(name.relative_to(CHECKOUT)): read_bytes(name, ArchiveError, MAX_FILE_BYTES)
        for name in names
    }
    files |= {"README.md": README.encode(), "COMMANDS.md": _commands().encode()}
    manifest = {
        "format": FORMAT,
        "knotless": version(),
        "commit": commit(),
        "files": {
            name: {"bytes": len(data), "sha256": sha256(data).hexdigest()}
            for name, data in sorted(files.items())
        },
    }
    files = {MANIFEST: json.dumps(manifest, indent=1).encode() + b"\n", **files}
    write_whole(path, gzip.compress(_tar(files), mtime=0), ArchiveError)
    return len(files)


def _commands() -> str:
    """Return the commands that repeat the runs of each section of a paper."""
    lines = ["# Commands"]
    for paper in papers():
        for section in paper.sections:
            if section.commands:
                lines += ["", f"## {paper.number}: {section.title}", ""]
                lines += [f"    {command}" for command in section.commands]
    return "\n".join(lines) + "\n"


def _tar(files: dict[str, bytes]) -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return sink.getvalue()


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """Unpack an archive's experiments into a folder for as long as the context lasts.

    Raises ArchiveError if it is no such archive, differs from its manifest, or has other claims
    than this version, from which other figures would be computed.
    """
    files = dict(_members(path))
    _check_manifest(path, files)
    with TemporaryDirectory(prefix="knotless-evidence-") as name:
        for member, data in files.items():
            place = PurePosixPath(member)
            if place.parts[0] == EXPERIMENTS:
                target = Path(name, place)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
        folder = Path(name, EXPERIMENTS)
        _check_claims(path, folder)
        yield folder


def _members(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files of an archive; raises ArchiveError for names outside of its folder."""
    with archives.opened(path, ArchiveError) as archive:
        if archive is None or not archive.is_tar:
            raise ArchiveError(f"{path}: no archive of evidence: make evidence writes one")
        for member in archive.members():
            place = PurePosixPath(member.name)
            if not member.is_file or place.is_absolute() or ".." in place.parts:
                raise ArchiveError(f"{path}: {member.name[:80]!r} is no file inside of the archive")
            if member.size > MAX_FILE_BYTES:
                raise ArchiveError(
                    f"{path}: {member.name[:80]} has more than {MAX_FILE_BYTES} bytes"
                )
            yield member.name, archive.data(member)


def _check_manifest(path: Path, files: dict[str, bytes]) -> None:
    try:
        manifest = json.loads(files[MANIFEST])
        number = manifest["format"]
        listed = {name: entry["sha256"] for name, entry in manifest["files"].items()}
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise ArchiveError(f"{path}: no {MANIFEST}: make evidence writes such archives") from error
    if number != FORMAT:
        raise ArchiveError(
            f"{path}: of format {str(number)[:20]}, not {FORMAT}: use its own version"
        )
    hashes = {name: sha256(data).hexdigest() for name, data in files.items() if name != MANIFEST}
    for name in sorted({*hashes, *listed}):
        if hashes.get(name) != listed.get(name):
            raise ArchiveError(f"{path}: {name[:80]} is not the file that {MANIFEST} lists")


def _check_claims(path: Path, folder: Path) -> None:
    for own in sorted(FOLDER.glob("*/claims.yaml")):
        other = folder / own.relative_to(FOLDER)
        if not other.is_file() or other.read_bytes() != own.read_bytes():
            raise ArchiveError(
                f"{path}: the claims of {own.parent.name} are not those of this version:"
                f" use Knotless of the commit in {MANIFEST}"
            )
