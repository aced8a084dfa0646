"""Plans on ordinary IEEE 802.1Q switches: PVIDs, VLAN membership and static MAC tables.

``from_plan`` says what each switch is given, each of ``targets`` writes it as one kind of file and
reads that back, and ``state`` is what the switches then do with frames.
"""
