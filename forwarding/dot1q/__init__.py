"""Plans on ordinary IEEE 802.1Q switches: PVIDs, VLAN membership and static MAC tables.

``from_plan`` says what each switch is given, ``targets`` write it as files, ``reader`` reads those
files back, and ``state`` is what the switches then do with frames.
"""
