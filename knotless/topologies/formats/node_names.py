"""Valid names of switches and hosts from the labels of other programs' files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from knotless.base.printable import listed, printable
from knotless.topologies.validate import LONGEST_NAME, folded

_SHOWN = 3


def valid_names(
    labels: Sequence[Sequence[str]], numbers: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return a distinct valid name for each node, and a note if some are not the labels.

    Parameters
    ----------
    labels : sequence of sequence of str
        What each node is called, the best first.
    numbers : sequence of str
        The name of each node that no label can name, such as ``s3``.

    Returns
    -------
    names : list of str
        The first label that :func:`knotless.topologies.validate.folded` can name. Of several nodes
        with the same name, those whose label it is come first, then those that come first; the
        others get ``-2``, ``-3``...
    notes : list of str
        One line, or none.

    Examples
    --------
    >>> valid_names([["New York"], ["Oslo"], ["Oslo"]], ["s1", "s2", "s3"])[0]
    ['New_York', 'Oslo', 'Oslo-2']

    """
    wanted = [
        next((name for label in own if (name := folded(label))), number)
        for own, number in zip(labels, numbers, strict=True)
    ]
    first = [next(filter(None, own), "") for own in labels]
    names: dict[int, str] = {}
    taken: set[str] = set()
    for name_is_label in (True, False):
        for place, name in enumerate(wanted):
            fits = place not in names and name not in taken
            if fits and (name == first[place] or not name_is_label):
                names[place] = name
                taken.add(name)
    numbered: dict[str, Iterator[int]] = {}
    for place, name in enumerate(wanted):
        numbers_of_name = numbered.setdefault(name, count(2))
        while place not in names:
            suffix = f"-{next(numbers_of_name)}"
            candidate = name[: LONGEST_NAME - len(suffix)] + suffix
            if candidate not in taken:
                names[place] = candidate
                taken.add(candidate)
    whole = [names[place] for place in range(len(wanted))]
    changed = [
        f"{printable(label)[:40]!r} is {name}"
        for label, name in zip(first, whole, strict=True)
        if label != name
    ]
    if not changed:
        return whole, []
    return whole, [
        f"names that had to be changed to be valid and distinct: {listed(changed, _SHOWN)}"
    ]
