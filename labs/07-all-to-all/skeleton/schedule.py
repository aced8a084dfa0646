"""My all-to-all schedule of 27 hosts: three on each of the nine leaves P(column, row) of lsft,3."""

VERTICAL = 3  # the slope of lines that stay in their column


def move(column, row, slope, hops):
    """Return the leaf that is some hops away on the line with this slope."""
    if slope == VERTICAL:
        return column, (row + hops) % 3
    return (column + hops) % 3, (row + slope * hops) % 3


def destination(phase, column, row, place):
    """Return (column, row, place) of the host to which a host sends in a phase, 0 to 26."""
    group, turn = divmod(phase, 3)  # nine groups of three phases
    to_place = (place + turn) % 3
    if group == 8:  # to the hosts of the same leaf
        return column, row, to_place
    slope, hop = divmod(group, 2)
    # TODO: here all hosts of a leaf send along the same line. Give each place another slope.
    return *move(column, row, slope, hop + 1), to_place
