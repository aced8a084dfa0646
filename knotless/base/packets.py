"""Limits of packets."""

MAX_PACKET_BYTES = 65_000
