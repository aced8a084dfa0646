"""The program of an MPI process of a kernel: it is started with FOLDER KERNEL CLASS.

Each process writes ``RANK.json`` to the folder: its time, its result, and all messages sent and
received.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from knotless_experiments.messages.nas_kernels import find
from knotless_experiments.messages.nas_kernels.kernel import Verification
from knotless_experiments.messages.programs.communicator import Communicator
from knotless_experiments.messages.programs.trace import Event, Recorder


@dataclass(frozen=True)
class Part:
    """The record of one process."""

    seconds: float
    verification: Verification
    events: list[Event]


def measured(communicator: Communicator, kernel: str, problem_class: str) -> Part:
    """Set a kernel up, run it between two barriers, and return the record."""
    recorder = Recorder(communicator)
    work = find(kernel, problem_class, communicator.size).make(recorder, problem_class)
    communicator.barrier()
    recorder.restart()
    began = time.perf_counter()
    work.run()
    seconds, events = time.perf_counter() - began, list(recorder.events)
    return Part(seconds, work.verification(), events)


def read_part(path: Path) -> Part:
    """Read the record of a process."""
    part = json.loads(path.read_text(encoding="utf-8"))
    events = [Event(*event) for event in part["events"]]
    return Part(part["seconds"], Verification(**part["verification"]), events)


def write_part(path: Path, part: Part) -> None:
    """Write the record of this process."""
    events = [list(asdict(event).values()) for event in part.events]
    document = {
        "seconds": part.seconds,
        "verification": asdict(part.verification),
        "events": events,
    }
    path.write_text(json.dumps(document), encoding="utf-8")


def main() -> None:
    """Run one MPI process."""
    from knotless_experiments.messages.programs.mpi import MpiCommunicator
    from knotless_experiments.messages.programs.openmpi import synchronised

    folder, kernel, problem_class = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    communicator = MpiCommunicator()
    parts: list[Part] = []
    synchronised(
        folder, communicator, lambda: parts.append(measured(communicator, kernel, problem_class))
    )
    write_part(folder / f"{communicator.rank}.json", parts[0])


if __name__ == "__main__":
    main()
