"""A grid of eight short simulations."""

SMALL = """
grid:
  fabric: "ring,4,rate=1000,delay=1"
  engine: [updown, dor]
  pattern: uniform
  load: [0.2, 0.4]
  seed: [1, 2]
  duration_us: 2000
"""
