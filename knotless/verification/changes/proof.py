"""The proof of one step of a change: nothing is lost, loops or can deadlock in any mixture.

Generations of rules are installed one after the other (see
:func:`knotless.forwarding.openflow.reader.state_of_generations`). The proof covers, for every order
and time at which switches take the rules:

- every packet that a host sends while the change goes on, whatever rules it meets on its way;
- every packet that was sent before, if it has met no rules but those of the generations: it is
  one of those that are explored, as the old rules are part of the mixture;
- the dependencies of all these packets together, since older packets may still hold channels.

Each switch must take its new rules all at once (an OpenFlow bundle), and the next generation must
be sent only after all switches have confirmed this one (a barrier), unless the next one has a lag
of more than one generation (:attr:`Generation.lag`).

Frames that the switch of their source drops, in some generation, are not lost by the change: that
generation alone drops them. (If hosts change their tags, what they send must be admitted too.)
Neither are packets that are lost by the older rules alone, or by the new ones alone, because a link
is cut. All others must be delivered, also where only a mixture sends them to that link.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from knotless.base.flow_control import FlowControl
from knotless.forwarding.openflow.reader import Generation, state_of_generations
from knotless.forwarding.state import ForwardingState
from knotless.routing.graphs.channels import VCS_PER_CHANNEL, channels_of
from knotless.routing.graphs.dependencies import Edges, find_cycle, waiting
from knotless.routing.multicast import MulticastGroup
from knotless.topologies.fabric import Fabric, Link
from knotless.verification.changes.admission import refused_frames
from knotless.verification.check import Outcome, outcome_of, problems_of
from knotless.verification.dependencies import edges_of

ALL = "all"
"""As the destination of a pair: frames of the source to all hosts and to groups."""


@dataclass(frozen=True)
class StepVerdict:
    """The outcome of generations, and what they lose.

    ``dependencies`` (dependencies, 2) are those of each priority for itself. ``loses`` tells
    whether a packet fails that the switch of its source sends on, to no port behind which nothing
    is. ``failing`` is all that fails, whatever the reason: pairs of hosts, and then for all hosts
    and each group the receivers of floods, as sets of bits; none in a proof that is kept.
    """

    outcome: Outcome
    dependencies: Edges
    loses: bool
    failing: tuple[int, ...]

    def failing_pairs(self, fabric: Fabric) -> set[tuple[str, str]]:
        """Return the pairs of hosts whose packets fail, and (host, ``all``) if its floods do."""
        hosts = [host.name for host in fabric.hosts]
        pairs = set[tuple[str, str]]()
        for kind, failing in enumerate(self.failing):
            for source in range(len(hosts)):
                of_source = failing >> source * len(hosts) & (1 << len(hosts)) - 1
                if kind and of_source:
                    pairs.add((hosts[source], ALL))
                elif of_source:
                    pairs |= {
                        (hosts[source], name)
                        for number, name in enumerate(hosts)
                        if of_source >> number & 1
                    }
        return pairs

    def newly_failing(self, *others: StepVerdict) -> int:
        """Return how many receivers fail that fail in none of the other verdicts."""
        count = 0
        for kind, failing in enumerate(self.failing):
            for other in others:
                failing &= ~other.failing[kind]
            count += failing.bit_count()
        return count


@dataclass(frozen=True)
class ProofContext:
    """The fabric, its flow control and the multicast groups, which stay as they are."""

    fabric: Fabric
    flow_control: FlowControl
    multicast: tuple[MulticastGroup, ...] = ()

    def judge(self, generations: Sequence[Generation]) -> StepVerdict:
        """Return the outcome of all mixtures of the generations, and what they lose.

        Raises
        ------
        RuleError
            See :func:`knotless.forwarding.openflow.reader.state_of_generations`.

        """
        state = self.state(generations)
        loses = any((state.core.lost, *state.core.floods_lost))
        failing = tuple(int.from_bytes(bits, "little") for bits in state.core.failing)
        return StepVerdict(outcome_of(state, self.flow_control), edges_of(state), loses, failing)

    def is_acyclic_without(
        self, empty: Collection[Link], generations: Sequence[Generation]
    ) -> bool:
        """Return whether no mixture can deadlock while no packet is on the links ``empty``.

        Packets of the generations may have crossed these links before. Raises RuleError as
        :meth:`judge`.
        """
        channels, index = channels_of(self.fabric), self.fabric.switch_index
        ends = [end for link in empty for end in ((link.a, link.a_port), (link.b, link.b_port))]
        unused = [channels.leaving[index[name], port] for name, port in ends]
        edges = self.judge(generations).dependencies
        kept = ~np.isin(edges // VCS_PER_CHANNEL, unused).any(axis=1)
        return not find_cycle(waiting(edges[kept], self.flow_control))

    def state(self, generations: Sequence[Generation]) -> ForwardingState:
        """Return the state of all mixtures of the generations; raises RuleError."""
        return state_of_generations(self.fabric, generations, self.multicast)


@dataclass(frozen=True)
class Proof:
    """The outcome of all mixtures of some generations, installed one after the other.

    ``judge`` returns the outcome of some of the generations; each is computed when it is needed.
    ``refused`` are frames with tags that are not admitted, see
    :func:`knotless.verification.changes.admission.refused_frames`.
    """

    generations: tuple[Generation, ...]
    mixed: StepVerdict
    judge: Callable[[Sequence[Generation]], StepVerdict]
    context: ProofContext
    refused: int = 0
    staying: Proof | None = None
    """The proof for the hosts whose packets to each other must be delivered; None: all hosts."""

    def without_cache(self, generations: Sequence[Generation]) -> Proof:
        """Return the same proof, of equal ``generations``, without what can be large."""
        fresh = Prover(self.context)
        staying = self.staying and self.staying.without_cache(generations)
        return replace(
            self,
            generations=tuple(generations),
            mixed=replace(self.mixed, failing=()),
            judge=fresh.judge,
            staying=staying,
        )

    @property
    def acyclic(self) -> bool:
        """Return whether no deadlock is possible in any mixture."""
        return self.mixed.outcome.acyclic

    @property
    def after(self) -> StepVerdict:
        """The outcome of the last generation alone."""
        return self.judge(self.generations[-1:])

    def problems(self) -> list[str]:
        """Describe what mixtures fail, and problems of rules."""
        return problems_of(self.context.state(self.generations))

    @cached_property
    def lost(self) -> int:
        """The receivers that some mixture fails because of the last generation.

        Packets that are sent from now on meet it and those that switches still hold, older ones all
        generations.
        """
        if self.staying is not None:
            return self.staying.lost
        held = self.generations[-1].lag + 1
        lost = self._lost_by_last(self.generations[-held:]) + self.refused
        if len(self.generations) > held:
            lost += self._lost_by_last(self.generations)
        return lost

    def _lost_by_last(self, generations: Sequence[Generation]) -> int:
        """Return how much a mixture fails, and neither the last generation nor the others do."""
        mixed, others = self.judge(generations), list[StepVerdict]()
        for part in (generations[:-1] or generations, generations[-1:]):
            if not mixed.newly_failing(*others):
                return 0  # without the outcome of a part that is not needed
            others.append(self.judge(part))
        return mixed.newly_failing(*others)

    def fails_no_more(self, before: int) -> bool:
        """Return whether no mixture fails a receiver that is served by what was there before.

        That are the first generations, so many: the last of them for packets that are sent from now
        on, and all of them for older ones.
        """
        ranges = {(before - 1, before), (0, before)}
        return all(
            self.judge(self.generations[begin:]).failing
            == self.judge(self.generations[begin:end]).failing
            for begin, end in ranges
        )

    @property
    def safe(self) -> bool:
        """Return whether the step loses nothing and cannot deadlock."""
        return self.acyclic and self.lost == 0


class Prover:
    """Proofs in the same context; the same generations are judged once.

    If ``staying`` names hosts, only what they send to each other must be delivered. No packet of
    any host may loop in a lossless priority or deadlock.
    """

    def __init__(self, context: ProofContext, staying: frozenset[str] | None = None) -> None:
        self.context = context
        self._staying: Prover | None = None
        if staying is not None:
            whole = context.fabric
            hosts = tuple(host for host in whole.hosts if host.name in staying)
            self._staying = Prover(replace(context, fabric=replace(whole, hosts=hosts)))
        self._judged: dict[tuple[object, ...], tuple[tuple[Generation, ...], StepVerdict]] = {}

    def alone(self, generation: Generation) -> StepVerdict:
        """Return the outcome of one generation."""
        return self.judge([generation])

    def judge(self, generations: Sequence[Generation]) -> StepVerdict:
        """Return the outcome of all mixtures of some generations; raises RuleError."""
        key = tuple((id(each.rules), id(each.tags), each.lag) for each in generations)
        if key not in self._judged:  # the generations are kept, so that their ids stay their own
            self._judged[key] = tuple(generations), self.context.judge(generations)
        return self._judged[key][1]

    def prove(self, generations: Sequence[Generation]) -> Proof:
        """Return the proof for generations that are installed one after the other."""
        context = self.context
        refused = refused_frames(context.fabric, generations, context.multicast)
        staying = None if self._staying is None else self._staying.prove(generations)
        mixed = self.judge(generations)
        return Proof(tuple(generations), mixed, self.judge, context, refused, staying)
