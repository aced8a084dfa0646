"""The family of a fabric, for engines that are made for one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from knotless.base.errors import PlanError
from knotless.routing.graphs.channels import Ints
from knotless.routing.graphs.task import Task
from knotless.topologies.fabric import FamilyMember
from knotless.topologies.spec import member_and_numbers


@dataclass(frozen=True)
class Membership:
    """A family's parameters, and the number of each switch in it, shape (switches,).

    A damaged fabric lacks some of the numbers.
    """

    family: FamilyMember
    numbers: Ints


def member_of(task: Task, engine: str, *families: str) -> Membership:
    """Return the membership of the fabric in one of ``families``.

    Raises
    ------
    PlanError
        The fabric belongs to another family, or to none.

    """
    member = member_and_numbers(task.fabric)
    if member is None or member[0].name not in families:
        raise PlanError(
            f"{engine} needs a fabric of the family {' or '.join(families)}, which"
            f" {task.fabric.name} is not; updown runs on any fabric"
        )
    return Membership(member[0], np.array(member[1], dtype=np.int32))
