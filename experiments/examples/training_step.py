"""One training step of a GPT-like model as a program in GOAL, for ``knotless simulate --goal``.

Ranks are data x pipeline x tensor, the tensor index running fastest. With L layers, hidden size h,
sequence length s, micro-batches of b sequences, and e bytes a number:

- Computing of a layer forward takes (24 b s h^2 + 4 b s^2 h) / T floating-point operations on each
  of T tensor ranks, and twice that backward (Narayanan et al., 2021).
- The tensor ranks all-reduce b s h e bytes twice a layer, forward and backward (Shoeybi et al.,
  2019), around a ring.
- A stage sends b s h e bytes to the next one for each micro-batch, and back. All micro-batches go
  forward, then all backward (GPipe, Huang et al., 2019).
- At the end, the data ranks all-reduce the gradients of a stage, 12 h^2 e L / (P T) bytes, around a
  ring. Embeddings, layer norms and biases are left out.

Example: python training_step.py --data 2 --tensor 2 --pipeline 2 > step.goal
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

TENSOR, FORWARD, BACKWARD, DATA = 1, 2, 3, 4
"""Tags of messages."""


@dataclass(frozen=True)
class Step:
    """A training step; see the options of the script."""

    data: int
    tensor: int
    pipeline: int
    layers: int
    hidden: int
    sequence: int
    batch: int
    micro_batches: int
    number_bytes: int
    tflops: float

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return self.data * self.pipeline * self.tensor

    @property
    def activation_bytes(self) -> int:
        """Bytes of the activations of a micro-batch between two layers."""
        return self.batch * self.sequence * self.hidden * self.number_bytes

    @property
    def gradient_bytes(self) -> int:
        """Bytes of the gradients of a rank."""
        weights = 12 * self.hidden**2 * (self.layers // self.pipeline)
        return weights // self.tensor * self.number_bytes

    @property
    def layer_ns(self) -> int:
        """Nanoseconds of computing of a layer forward."""
        b, s, h = self.batch, self.sequence, self.hidden
        operations = (24 * b * s * h**2 + 4 * b * s**2 * h) / self.tensor
        return round(operations / (self.tflops * 1e3))

    def rank(self, data: int, stage: int, tensor: int) -> int:
        """Return the number of a rank."""
        return (data * self.pipeline + stage) * self.tensor + tensor


class Rank:
    """The operations of a rank; each requires those of ``after``."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._after: list[str] = []
        self._count = 0

    def add(self, *operations: str) -> None:
        """Add operations that follow all before, side by side."""
        labels = []
        for operation in operations:
            self._count += 1
            labels.append(f"l{self._count}")
            self.lines.append(f"{labels[-1]}: {operation}")
            self.lines += [f"{labels[-1]} requires {before}" for before in self._after]
        self._after = labels

    def all_reduce(self, group: Sequence[int], place: int, size: int, tag: int) -> None:
        """All-reduce ``size`` bytes around a ring; this rank is ``group[place]``."""
        count = len(group)
        following, previous = group[(place + 1) % count], group[place - 1]
        parts = [size // count + (part < size % count) for part in range(count)]
        for turn in range(2 * (count - 1)):
            out, into = parts[(place - turn) % count], parts[(place - 1 - turn) % count]
            self.add(
                f"send {out}b to {following} tag {tag}", f"recv {into}b from {previous} tag {tag}"
            )


def program(step: Step) -> Iterator[str]:
    """Yield the lines of the program."""
    yield f"num_ranks {step.ranks}"
    for data in range(step.data):
        for stage in range(step.pipeline):
            for tensor in range(step.tensor):
                yield f"rank {step.rank(data, stage, tensor)} {{"
                yield from _rank(step, data, stage, tensor)
                yield "}"


def _rank(step: Step, data: int, stage: int, tensor: int) -> list[str]:
    rank = Rank()
    of_tensor = [step.rank(data, stage, other) for other in range(step.tensor)]
    of_data = [step.rank(other, stage, tensor) for other in range(step.data)]
    for backward in (False, True):
        tag, to = (BACKWARD, stage - 1) if backward else (FORWARD, stage + 1)
        origin = stage + 1 if backward else stage - 1
        for _ in range(step.micro_batches):
            if 0 <= origin < step.pipeline:
                peer = step.rank(data, origin, tensor)
                rank.add(f"recv {step.activation_bytes}b from {peer} tag {tag}")
            for _ in range(step.layers // step.pipeline):
                rank.add(f"calc {step.layer_ns * (2 if backward else 1)}")
                for _ in range(2):
                    rank.all_reduce(of_tensor, tensor, step.activation_bytes, TENSOR)
            if 0 <= to < step.pipeline:
                peer = step.rank(data, to, tensor)
                rank.add(f"send {step.activation_bytes}b to {peer} tag {tag}")
    rank.all_reduce(of_data, data, step.gradient_bytes, DATA)
    return rank.lines


def parsed(arguments: Sequence[str] | None = None) -> Step:
    """Return the step that the options describe."""
    parser = argparse.ArgumentParser(
        description="One training step of a GPT-like model as a program in GOAL.",
        epilog="Example: training_step.py --data 2 --tensor 2 --pipeline 2 > step.goal",
    )
    for name, default, text in (
        ("data", 2, "data-parallel replicas"),
        ("tensor", 2, "tensor-parallel ranks"),
        ("pipeline", 2, "pipeline stages"),
        ("layers", 4, "layers, a multiple of --pipeline"),
        ("hidden", 256, "hidden size"),
        ("sequence", 128, "tokens of a sequence"),
        ("batch", 1, "sequences of a micro-batch"),
        ("micro-batches", 2, "micro-batches of a replica"),
        ("number-bytes", 2, "bytes of a number"),
    ):
        parser.add_argument(f"--{name}", type=int, default=default, help=f"{text} [{default}]")
    parser.add_argument(
        "--tflops", type=float, default=100.0, help="operations a rank computes, 10^12/s [100]"
    )
    step = Step(**vars(parser.parse_args(arguments)))
    if min(vars(step).values()) <= 0:
        parser.error("all values must be above 0")
    if step.layers % step.pipeline:
        parser.error("--layers must be a multiple of --pipeline")
    return step


if __name__ == "__main__":
    for line in program(parsed()):
        sys.stdout.write(line + "\n")
