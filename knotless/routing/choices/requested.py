"""The kinds of choice that ``--multipath`` offers."""

from __future__ import annotations

from collections.abc import Mapping

from knotless.routing.choices.choice import RequestedChoice
from knotless.routing.choices.ecmp import Ecmp
from knotless.routing.choices.layers import Layers
from knotless.routing.choices.single_path import SinglePath
from knotless.routing.choices.spray import Spray
from knotless.routing.request import Multipath

KINDS: Mapping[Multipath, type[RequestedChoice]] = {
    "none": SinglePath,
    "ecmp": Ecmp,
    "spray": Spray,
    "layers": Layers,
}
