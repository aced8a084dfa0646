"""The packet-level simulator."""

PICOSECONDS_PER_SECOND: int
