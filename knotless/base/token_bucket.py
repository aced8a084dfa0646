"""A token bucket, which limits a rate and permits bursts (RFC 2697, with one bucket)."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class TokenBucket:
    """Tokens that come at a rate and are kept up to ``burst``, all of which are there at first.

    ``now_s`` is any monotonic clock of the caller.

    >>> bucket = TokenBucket(rate_per_s=10, burst=1)
    >>> bucket.take(5.0), bucket.take(5.0), bucket.take(5.1)
    (True, False, True)
    >>> round(bucket.reserve_s(5.1, longest_s=1.0), 3)
    0.1
    """

    rate_per_s: float
    burst: float
    _left: float = field(init=False)
    """Negative by those that are reserved and have not come."""
    _since_s: float | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._left = self.burst

    def take(self, now_s: float) -> bool:
        """Take a token; False if none is left."""
        return self.reserve_s(now_s) is not None

    def reserve_s(self, now_s: float, longest_s: float = 0.0) -> float | None:
        """Take a token that comes within ``longest_s``, and return when; None if none does."""
        earned = 0.0 if self._since_s is None else (now_s - self._since_s) * self.rate_per_s
        self._left, self._since_s = min(self.burst, self._left + earned), now_s
        wait_s = max(0.0, (1 - self._left) / self.rate_per_s)
        if wait_s > longest_s:
            return None
        self._left -= 1
        return wait_s
