"""Plans on ordinary IEEE 802.1Q switches: PVIDs, VLAN membership and static MAC tables.

``from_plan`` computes the tables of each switch, ``targets`` write them as files, ``reader`` reads
the files, and ``state`` is the resulting forwarding state.
"""
