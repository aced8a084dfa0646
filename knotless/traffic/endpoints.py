"""End points: the message classes of hosts, and what a host sends before it takes more of one.

::

    classes:
      request:
        priority: 0
        sends_before_taking: [reply]   # a request that finds no reserve waits for its reply
        reserve: 64                    # requests that a host holds while it owes their replies
        outstanding: 4                 # a host has at most so many unanswered at each other host
      reply: {priority: 1}             # is always taken
    roles:                             # without them, all hosts are both
      clients: [h1, h2]                # they send what is sent for no other class, to servers
      servers: [h9]

A network whose hosts answer before they take more can deadlock although no cycle of channels leads
through switches alone: requests wait in the network for a host that waits to send a reply
(*message-dependent deadlock*). What a class names in ``sends_before_taking`` is sent for it alone,
one message to the host that it came from. All hosts have the same classes.

References
----------
Song and Pinkston, A progressive approach to handling message-dependent deadlock in parallel
computer systems, IEEE Transactions on Parallel and Distributed Systems 14(3), 2003.
Hansson, Goossens and Radulescu, Avoiding message-dependent deadlock in network-based systems on
chip, VLSI Design, 2007.

"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from knotless.base import yaml_file
from knotless.base.complaints import complaint
from knotless.base.counting import counted
from knotless.base.errors import EndpointError
from knotless.base.model_limits import PRIORITIES
from knotless.base.suggestions import suggestion

MAX_CLASSES = 16
MAX_MESSAGES = 1_000_000
"""Limit of a reserve, and of the messages of a pair of hosts."""

Name = Annotated[str, Field(min_length=1, max_length=40, pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")]
Messages = Annotated[int, Field(ge=0, le=MAX_MESSAGES)]


class MessageClass(BaseModel):
    """A kind of message that every host may send to every other.

    Attributes
    ----------
    priority : the priority on which hosts send it. Switches keep priorities apart: with a plan of V
        virtual channels, priority P has the V from P times V on.
    sends_before_taking : the classes of which a host sends a message before it takes one of these,
        unless it has a reserve for it.
    reserve : messages that a host holds, of all senders together, while it owes what they require.
    reserve_per_host : the same for each sender, in addition.
    outstanding : messages that a host has unanswered at each other host at most; None: any number.
        One is answered when its sender has taken, or sent, the last message that follows from it.

    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    priority: Annotated[int, Field(ge=0, lt=PRIORITIES)] = 0
    sends_before_taking: Annotated[
        tuple[Name, ...], Field(strict=False, max_length=MAX_CLASSES)
    ] = ()
    reserve: Messages = 0
    reserve_per_host: Messages = 0
    outstanding: Annotated[int, Field(ge=1, le=MAX_MESSAGES)] | None = None


Hosts = Annotated[tuple[str, ...], Field(strict=False, min_length=1)]


class Roles(BaseModel):
    """The names of the hosts that begin, and of those to which they send; a host may be both.

    What a message requires goes back to the other role. Other hosts send none of these messages.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    clients: Hosts
    servers: Hosts

    def begins(self, source: str, destination: str) -> bool:
        """Tell whether a host sends messages of its own to another."""
        return source != destination and source in self.clients and destination in self.servers


class Reserve(NamedTuple):
    """Whether a host always has room for what it may get of a class.

    ``outstanding`` are the messages that each of ``senders`` hosts has unanswered at one host at
    most; None: any number. ``reserve`` is what a host holds of all of them.
    """

    message: str
    requires: tuple[str, ...]
    senders: int
    outstanding: int | None
    reserve: int

    @property
    def suffices(self) -> bool:
        """Whether each message is taken when it arrives."""
        if self.outstanding is None:
            return self.senders == 0
        return self.senders * self.outstanding <= self.reserve

    @property
    def text(self) -> str:
        """The inequality, and what follows."""
        required = " and ".join(self.requires)
        more = f"a {self.message} can wait for its {required} to be sent"
        if self.suffices:
            more = f"each {self.message} is taken before its {required} is sent"
        hosts = counted(self.senders, "hosts")
        sign = "<=" if self.suffices else ">"
        if self.outstanding is None:
            return f"{hosts} x any number outstanding {sign} reserve of {self.reserve:,}: {more}"
        total = self.senders * self.outstanding
        return (
            f"{hosts} x {self.outstanding:,} outstanding = {total:,} {sign}"
            f" reserve of {self.reserve:,}: {more}"
        )

    def as_json(self) -> dict[str, object]:
        """Return it as plain values."""
        values = {**self._asdict(), "requires": list(self.requires)}
        return {**values, "suffices": self.suffices, "text": self.text}


class EndpointModel(BaseModel):
    """The message classes of all hosts, by name.

    ``roles`` are the hosts that begin and those that answer, None: all are both. ``name`` is the
    preset or the file that they come from.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    classes: Annotated[dict[Name, MessageClass], Field(min_length=1, max_length=MAX_CLASSES)]
    roles: Roles | None = None
    name: Annotated[str, Field(exclude=True, init=False)] = "end points"

    @classmethod
    def from_values(cls, values: object, name: str) -> Self:
        """Return the model of plain values, such as those of a YAML file; raises EndpointError."""
        try:
            model = cls.model_validate(values)
        except ValidationError as error:
            raise EndpointError(f"{name}: {complaint(error)}") from None
        for problem in model._problems():
            raise EndpointError(f"{name}: classes.{problem}")
        return model.model_copy(update={"name": name})

    def _problems(self) -> Iterator[str]:
        """Yield what does not fit together, below the key of its class."""
        for name, one in self.classes.items():
            for required in one.sends_before_taking:
                if required not in self.classes:
                    hint = suggestion(required, self.classes)
                    yield f"{name}.sends_before_taking: there is no class {required!r}; {hint}"
            if one.outstanding is not None and name in self.required:
                yield (
                    f"{name}.outstanding: messages of {name} are sent for others alone, which are"
                    " counted instead; omit it"
                )

    def refuse_unknown_hosts(self, hosts: Collection[str]) -> None:
        """Raise EndpointError for a role of a host that is none of ``hosts``."""
        for role, names in () if self.roles is None else self.roles:
            for name in names:
                if name not in hosts:
                    hint = suggestion(name, hosts)
                    raise EndpointError(f"{self.name}: roles.{role}: no host {name[:40]!r}; {hint}")

    @cached_property
    def required(self) -> frozenset[str]:
        """The classes that are sent for others."""
        return frozenset(name for one in self.classes.values() for name in one.sends_before_taking)

    @cached_property
    def priorities(self) -> tuple[int, ...]:
        """The priorities of all classes, ascending."""
        return tuple(sorted({one.priority for one in self.classes.values()}))

    @property
    def takes_all(self) -> bool:
        """Whether hosts take all that arrives, whatever they have to send."""
        return not self.required

    def outstanding(self, name: str) -> int | None:
        """Return how many messages of a class one host can have at another before they are taken.

        Those that are sent for others are as many as these. None: any number, also of a class that
        is sent for itself, directly or through others.
        """
        return self._outstanding(name, ())

    def _outstanding(self, name: str, path: tuple[str, ...]) -> int | None:
        if name in path:
            return None
        if name not in self.required:
            return self.classes[name].outstanding
        total = 0
        for cause, one in self.classes.items():
            for _ in range(one.sends_before_taking.count(name)):
                bound = self._outstanding(cause, (*path, name))
                if bound is None:
                    return None
                total += bound
        return total

    def reserves(self, hosts: int) -> list[Reserve]:
        """Return for each class that requires others whether its reserve suffices for ``hosts``."""
        return [
            Reserve(
                name,
                one.sends_before_taking,
                senders,
                self.outstanding(name),
                one.reserve + senders * one.reserve_per_host,
            )
            for name, one in self.classes.items()
            if one.sends_before_taking
            for senders in [self._senders(name, hosts)]
        ]

    def _senders(self, name: str, hosts: int) -> int:
        """Return how many hosts may send messages of a class to one, at most."""
        if self.roles is None:
            return max(0, hosts - 1)
        clients, servers = {*self.roles.clients}, {*self.roles.servers}
        to_servers, to_clients = self._goes_to[name]
        if to_servers and to_clients:
            return len(clients | servers) - 1
        senders, takers = (clients, servers) if to_servers else (servers, clients)
        return max(len(senders - {taker}) for taker in takers)

    @cached_property
    def _goes_to(self) -> dict[str, tuple[bool, bool]]:
        """Whether messages of each class go to servers, and whether they go to clients."""
        goes = {(name, True) for name in self.classes if name not in self.required}
        pending = [*goes]
        while pending:
            name, to_servers = pending.pop()
            new = {(sent, not to_servers) for sent in self.classes[name].sends_before_taking} - goes
            goes |= new
            pending += new
        every = {name: ((name, True) in goes, (name, False) in goes) for name in self.classes}
        return {name: ends if any(ends) else (True, True) for name, ends in every.items()}

    def takes(self, host: str, name: str) -> bool:
        """Tell whether a host gets messages of a class."""
        if self.roles is None:
            return True
        to_servers, to_clients = self._goes_to[name]
        return (to_servers and host in self.roles.servers) or (
            to_clients and host in self.roles.clients
        )

    def waits(self, hosts: int) -> Iterator[tuple[str, str]]:
        """Yield the pairs of classes of which a host can have to send the second to take the first.

        Those of a class whose reserve suffices are none.
        """
        for reserve in self.reserves(hosts):
            if not reserve.suffices:
                yield from ((reserve.message, required) for required in reserve.requires)

    def changed(self, **classes: Mapping[str, Any]) -> EndpointModel:
        """Return the same with other values of classes, by their names; raises EndpointError."""
        values = self.model_dump(mode="json")
        for name, changes in classes.items():
            values["classes"][name] |= changes
        return type(self).from_values(values, self.name)

    def on_one_priority(self) -> EndpointModel:
        """Return the same with all messages on priority 0."""
        return self.changed(**{name: {"priority": 0} for name in self.classes})

    @property
    def text(self) -> str:
        """The model as YAML that :func:`read` reads as the same, without defaults."""
        return yaml_file.text_of(self.model_dump(mode="json", exclude_defaults=True))


def read(path: Path) -> EndpointModel:
    """Return the end points in a YAML file; raises EndpointError with file, line or key."""
    content = yaml_file.read(path, EndpointError)
    return EndpointModel.from_values({} if content is None else content, str(path))
