"""Whole controllers in simulated time, under one seed, with faults.

Controllers run unchanged, alone or with Ryu: Eventlet gets a hub whose clock is
simulated (:mod:`tests.seeded.hub`), and functions of :mod:`knotless.controller.runtime` are
replaced (:mod:`tests.seeded.runtime`). Switches, links, disks and operators are models in the same
process. Whatever is drawn follows from the seed and the identity of the event for which it is
drawn, so equal seeds give equal runs, and leaving a fault out does not change what else is drawn.
"""
