"""``knotless check --proof F``: what another program needs to check the verdict."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from knotless.base.counting import counted
from knotless.base.errors import ProofError
from knotless.base.files import folder_for_files, read_bytes, write_all, write_whole
from knotless.base.printable import listed
from knotless.forwarding.openflow.directory import dir_files, rule_files, write_files
from knotless.forwarding.openflow.rules import FabricRules
from knotless.forwarding.state import ForwardingState
from knotless.importers.fabric import AnyFabric, TableFabric
from knotless.importers.listing import MAX_FILE_BYTES, listed_files
from knotless.importers.route_tables import ROUTES
from knotless.importers.subnet_tables import LFT
from knotless.routing.vlans.host_tags import HostTags
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats.switch_files import FABRIC, RULES
from knotless.verification.check import Outcome, outcome_of
from knotless.verification.imported_verdict import ImportedVerdict
from knotless.verification.proof_failures import ProvenFailures, proven_failures
from knotless.verification.proof_file import proof_text, reason_not_covered, tests_more
from knotless.verification.proof_frames import SentFrames, sent_frames
from knotless.verification.route_proof import route_proof
from knotless.verification.subnet_proof import subnet_proof
from knotless.verification.unmet_rules import without_unmet_rules

NO_RECEIVERS = "; too many to follow who receives frames then"
_SHOWN = 4


@dataclass(frozen=True)
class Proven:
    """The subject of a proof: rules, their state, the verdict on it, and the tags of hosts."""

    fabric: Fabric
    rules: FabricRules
    state: ForwardingState
    verdict: Outcome
    tags: HostTags | None = None

    def without_unmet(self) -> tuple[Proven, int]:
        """Return the same without rules that no frame of a host meets, and how many they are."""
        rules, unmet = without_unmet_rules(self.fabric, self.rules)
        return replace(self, rules=rules), unmet

    def failures(self) -> ProvenFailures | None:
        """Return the failures that the proof is about; None: nothing is claimed of failures."""
        control = self.verdict.flow_control
        is_covered = (
            self.verdict.safe
            and self.tags is None
            and control.is_lossless
            and not self.state.first_free
        )
        if not is_covered or not any(
            group.watch for each in self.rules.values() for group in each.groups
        ):
            return None
        return proven_failures(self.state, self.rules, control)

    def sent(self) -> SentFrames | None:
        """Return the frames of hosts that the proof is about; None: it shows one that can wait."""
        if not self.verdict.safe or not self.verdict.flow_control.is_lossless:
            return None
        return sent_frames(self.fabric, self.rules, self.verdict.flow_control, self.tags)

    def files(self) -> dict[str, bytes]:
        """Return the files of a folder with the rules."""
        return {name: text.encode() for name, text in dir_files(self.fabric, self.rules).items()}


@dataclass(frozen=True)
class WrittenProof:
    """The ``file`` of a proof, and the folder of the ``rules`` that it names by their SHA-256.

    The folder ``is_copy`` unless it is the one that was checked. Rules that no frame of a host
    meets are not in a copy: ``left_out`` is how many. ``failures`` are those that it is about, and
    ``sent`` the frames of hosts. Unless it ``delivers``, it does not say that frames arrive.
    ``kind`` is what the folder has.
    """

    file: str
    rules: str
    is_copy: bool
    left_out: int = 0
    failures: ProvenFailures | None = None
    sent: SentFrames | None = None
    delivers: bool = True
    kind: str = "rules"

    @property
    def remarks(self) -> Iterator[str]:
        """Lines about a copy, about frames that are not covered, and about failures."""
        if self.is_copy:
            without = f" without {counted(self.left_out, 'rules')} for frames of switches"
            without *= self.left_out > 0
            yield f"{self.kind} of the proof, as they were read{without}: {self.rules}"
        if not self.delivers:
            yield "the proof does not say that frames arrive"
        if self.sent is not None and self.sent.not_covered:
            yield self.sent.not_covered
        if self.failures is None:
            return
        if (proven := self.failures.failures) or self.failures.can_deadlock:
            pairs = sum(len(failure.cut or ()) for failure in proven)
            receivers = "" if all(failure.cut is not None for failure in proven) else NO_RECEIVERS
            cut = f", which cut {counted(pairs, 'pairs')} of hosts" if pairs else ""
            yield f"also proven: {counted(len(proven), 'failures')} of a part{cut}{receivers}"
        if names := self.failures.can_deadlock:
            yield f"NOT PROVEN, frames can deadlock then: failure of {listed(names, _SHOWN)}"


def write_proof(file: str, proven: Proven, folder: str | None) -> WrittenProof:
    """Write the proof of a verdict on the rules in ``folder``.

    The program that reads the proof has to know the form of the folder. If there is none of ours
    (``folder`` is None), or if it has rules as switches print them, they are written to a new one,
    ``FILE.rules``, without those that test EtherTypes and that no frame of a host meets.

    Raises
    ------
    ProofError
        Proofs do not cover the rules or the verdict, and nothing is written; or a file cannot be.

    """
    files = None if folder is None else rule_files(folder)
    is_covered = files is not None and not reason_not_covered(files)
    stripped, left_out = proven, 0
    if files is None or not is_covered or tests_more(files):
        stripped, left_out = proven.without_unmet()
    if folder is not None and files is not None and is_covered and not left_out:
        text, written = _proof(file, folder, files, proven)
        write_whole(file, text, ProofError)
        return written
    files, copy = stripped.files(), f"{file}.rules"
    text, written = _proof(file, copy, files, stripped)
    write_files({name: content.decode() for name, content in files.items()}, copy)
    write_whole(file, text, ProofError)
    return replace(written, is_copy=True, left_out=left_out)


def _proof(
    file: str, folder: str, files: Mapping[str, bytes], proven: Proven
) -> tuple[str, WrittenProof]:
    """Return the text of the proof of the rules in a folder, and what is said of it."""
    failures, sent, verdict = proven.failures(), proven.sent(), proven.verdict
    if proven.tags is not None and sent is not None and sent.tags:
        raise ProofError(f"proofs do not cover how {sent.tags} treats the tags of hosts")
    text = proof_text(files, proven.state, proven.rules, verdict, failures, sent, proven.tags)
    delivers = not verdict.safe or "\nclaim safe\n" in text
    return text, WrittenProof(
        file, folder, is_copy=False, failures=failures, sent=sent, delivers=delivers
    )


def write_imported_proof(
    file: str, imported: AnyFabric, verdict: ImportedVerdict, paths: Sequence[str] = ()
) -> WrittenProof:
    """Write the proof of a verdict on dumps of switches, as :func:`write_proof` does.

    The rules of OpenFlow switches, the routes of routers, or the tables of InfiniBand switches are
    written to ``FILE.rules``; beside routes and tables also the SHA-256 of the files in ``paths``
    from which they were read.
    """
    if verdict.safe is None:
        raise ProofError(f"proofs do not cover unknown verdicts: missing {verdict.missing[0]}")
    if isinstance(imported, TableFabric):
        read_from = dict(_sums(paths, verdict.ignored)) if paths else {}
        if imported.subnet_tables is not None:
            files, text = subnet_proof(imported, imported.subnet_tables(), verdict, read_from)
            return _write_copy(file, files, text, "tables")
        files, text = route_proof(imported, verdict, read_from)
        return _write_copy(file, files, text, "routes")
    if unread := [name for name, rules in imported.unread_rules.items() if rules]:
        raise ProofError(f"proofs do not cover rules that are not understood, as {unread[0]} has")
    state = imported.traffics[0].state
    outcome = outcome_of(state, imported.flow_control)
    return write_proof(file, Proven(imported.fabric, imported.rules, state, outcome), None)


def _sums(paths: Sequence[str], ignored: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the files and archives that were read, with their SHA-256."""
    for path, _ in listed_files(paths):
        if path not in ignored:
            data = read_bytes(path, ProofError, MAX_FILE_BYTES)
            yield path, hashlib.sha256(data).hexdigest()


def _write_copy(file: str, files: Mapping[str, str], text: str, kind: str) -> WrittenProof:
    """Write a proof, and what it is about to a folder, from which those of an earlier one go."""
    folder = Path(f"{file}.rules")
    with folder_for_files(folder, ProofError):
        whole = {folder / name: content for name, content in files.items()}
        write_all({**whole, Path(file): text}, ProofError, remove=_earlier(folder, files))
    return WrittenProof(file, str(folder), is_copy=True, kind=kind)


def _earlier(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Return the files of routers or switches that an earlier proof has left in a folder.

    Raises ProofError if some are of another fabric, because nobody knows whose they are.
    """
    others = sorted(path for path in folder.iterdir() if path.suffix in (*RULES, ROUTES, LFT))
    others = [path for path in others if path.name not in files]
    if not others:
        return []
    try:
        fabric = json.loads((folder / FABRIC).read_text())
        own = {f"{name}{ROUTES}" for name in fabric.get("routers", ())}
        own |= {f"{name}{LFT}" for name in fabric.get("switches", ())}
    except (OSError, ValueError, AttributeError, TypeError):
        own = set()
    if unknown := [path.name for path in others if path.name not in own]:
        raise ProofError(f"{folder} has {unknown[0]} of another fabric: name another file")
    return others
