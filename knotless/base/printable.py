r"""Text from outside, as people see it: one function for each medium.

Names come from files, rules, hosts and switches of others. None may control a terminal, forge a
line of a log, or be read as markup.

=====================  =====================================================================
terminal, files        :func:`printable`; :func:`json_text` for JSON
table of Rich          :func:`rich_text`
HTML                   :func:`html_text`
drawing, SVG           :func:`drawn_text`, which :mod:`knotless.results.plots` calls
log                    :func:`protect_logs`, once in a process
message of an error    :func:`brief`, which :class:`knotless.base.errors.KnotlessError` calls;
                       :func:`shortened` for a name with spaces but without quotes
=====================  =====================================================================

Commands print with :mod:`knotless.cli.output`, which calls these.
"""

from __future__ import annotations

import html
import json
import logging
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

MAX_NAME = 200
"""Characters of a name that the message of an error shows."""
_LONG_NAME = re.compile(
    rf"(?<!\w)'[^'\n]{{{MAX_NAME},}}'(?!\w)"
    rf'|(?<!\w)"[^"\n]{{{MAX_NAME},}}"(?!\w)'
    rf"|\S{{{MAX_NAME + 1},}}"
)


def printable(text: str) -> str:
    r"""Return ``text`` with each character that is not printable as an escape sequence.

    Newlines are escaped too: text from outside is shown in one line.

    Examples
    --------
    >>> print(printable("s1\x1b[2J"))
    s1\x1b[2J

    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def json_text(value: object, *, indent: int | None = None, allow_nan: bool = True) -> str:
    r"""Return ``value`` as JSON of ASCII characters, of which none controls a terminal.

    Examples
    --------
    >>> print(json_text({"name": "s1\x7f"}))
    {"name": "s1\u007f"}

    """
    # The only character of ASCII that is not printable and that JSON does not escape.
    return json.dumps(value, indent=indent, allow_nan=allow_nan).replace("\x7f", "\\u007f")


def rich_text(text: str, style: str = "") -> Text:
    """Return the content of a cell or title of Rich, in which no character is markup."""
    from rich.text import Text  # only tables need it

    return Text(printable(text), style)


def html_text(text: str) -> str:
    """Return ``text`` for HTML, in elements and in attributes with quotes.

    Examples
    --------
    >>> html_text('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'

    """
    return html.escape(printable(text))


def drawn_text(text: str) -> str:
    r"""Return ``text`` for Matplotlib, which reads what is between two ``$`` as mathematics.

    Matplotlib writes it as paths, or escaped, into SVG. What is for Matplotlib already stays.

    Examples
    --------
    >>> print(drawn_text("$x$"))
    \$x\$

    """
    return re.sub(r"(?<!\\)\$", r"\\$", "\n".join(map(printable, text.split("\n"))))


def log_text(text: str) -> str:
    r"""Return ``text`` for a log; a further line is indented, so that it is no entry of its own.

    Examples
    --------
    >>> log_text("no\x07\nroot logged in")
    'no\\x07\n    root logged in'

    """
    return "\n    ".join(map(printable, text.split("\n")))


class _Entry(logging.LogRecord):
    """An entry of a log with its message and traceback as :func:`log_text`."""

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]
        if self.exc_info and self.exc_info[0]:
            # Handlers format the traceback only if there is no text yet.
            self.exc_text = log_text(logging.Formatter().formatException(self.exc_info))

    def getMessage(self) -> str:  # noqa: N802 - the name of logging
        """Return the message."""
        return log_text(super().getMessage())


def protect_logs() -> None:
    """Have all entries of the logs of this process be :func:`log_text`."""
    logging.setLogRecordFactory(_Entry)


def brief(message: str) -> str:
    """Return the message of an error with at most 200 characters of each name in it.

    A name is what stands in quotes, or has no space.

    Examples
    --------
    >>> brief("there is no switch " + 300 * "s") == f"there is no switch {150 * 's'}...{47 * 's'}"
    True

    """
    return _LONG_NAME.sub(lambda name: shortened(name[0]), message)


def shortened(name: str) -> str:
    """Return begin and end of a name of more than 200 characters: they tell long paths apart."""
    return name if len(name) <= MAX_NAME else f"{name[:150]}...{name[-(MAX_NAME - 153) :]}"


def listed(items: Iterable[str], most: int = 8) -> str:
    """Return the first items with commas between them, and the number of further ones.

    Examples
    --------
    >>> listed(["s1", "s2", "s3"], 2)
    's1, s2 and 1 more'

    """
    texts = list(items)
    more = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {more} more" if more > 0 else "")
