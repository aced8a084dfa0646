"""Messages and barriers between hosts (docs/messages.md), MPI programs, and the NAS kernels."""

from knotless._core.barrier import Barrier
from knotless._core.endpoint import (
    AccessPattern,
    DeliveryError,
    Endpoint,
    EndpointError,
    Message,
    Twin,
)

__all__ = [
    "AccessPattern",
    "Barrier",
    "DeliveryError",
    "Endpoint",
    "EndpointError",
    "Message",
    "Twin",
]
