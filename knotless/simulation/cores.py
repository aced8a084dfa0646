"""The most cores that a simulation uses; its result does not depend on their number."""

MAX_CORES = 64
