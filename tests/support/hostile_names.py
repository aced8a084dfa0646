"""Names that control terminals, forge lines, or are read as markup, and what must become of them.

A name replaces words of files, or is an argument. Whatever a command prints or writes then is
judged by :func:`judge`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.parsers import expat

from click.testing import Result
from hypothesis import strategies as st

from knotless.base.printable import MAX_NAME

LETTER = "\u023a"
"""A letter that occurs in no message and no file: names consist of it where length matters."""
LINK = "[link=http://evil.example/]x[/link]"
NAMES = (
    "x[/b]", LINK, "[red]x", "[/]", ":skull:", "[bold", "\\[x]", "[@click=app.quit]x[/]",
    "\x1b[2J", "\x1b]0;owned\x07", "\x1b]8;;http://evil.example/\x1b\\x", "\x9b31m", "\x90x\x9c",
    "\x07\x08\x7f", "\r\x1b[A", "a\nroot logged in", "a\r\nb", "\x00", "\x85", "\u2028",
    "\u202eevil",    "\u2066x", "\u200b", "\ufeff", "\U000e0041", "\u0301" * 90, "\ue000",
    "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "&lt;b&gt;", "--><b>", "]]>",
    "$x$", "$\\frac{$", "$" * 9, "\\$$", "%s%d%n", "{0}{x!r}", "{{7*7}}", "{% x %}", "`id`",
    "$(id)",    "../../etc/x", "a'b\"c", "--help", "-", "", " ",
    LETTER * 5000, f"{LETTER} " * 2500, f"'{LETTER * 999}", f"{LETTER * 999}\"", f"{LETTER}/" * 900,
)  # fmt: skip
"""One for each kind of harm; tests also draw others, and joins of these."""

names = st.one_of(
    st.sampled_from(NAMES),
    st.lists(st.sampled_from(NAMES[:-5]), min_size=2, max_size=3).map("".join),
    st.text(max_size=12),
)
_LONG = re.compile(f"(?:{LETTER}[ /'\"]?){{{MAX_NAME + 1},}}")
_WORD = re.compile(rb"[A-Za-z][A-Za-z0-9_.:|-]{1,30}")


def judge(done: Result, *, as_json: bool = False) -> None:
    """Fail if a command ended badly, or if its output could control a terminal or mislead."""
    crash = done.exception
    assert crash is None or isinstance(crash, SystemExit), repr(crash)
    assert done.exit_code in (0, 1, 2), done.exit_code
    for text in (done.stdout, done.stderr):
        assert all(c.isprintable() or c == "\n" for c in text), repr(text)
        shown = "".join(text.split())
        assert shown.count("http://evil.example/") <= shown.count("[link=http://evil.example/") + (
            shown.count("]8;;http://evil.example/")
        ), text
    if done.exit_code == 2:
        assert done.stderr.rstrip("\n").split("\n")[-1].startswith("knotless: ")
        assert not _LONG.search(done.stderr), done.stderr[:2000]
    elif as_json:
        json.loads(done.stdout)


def judge_drawing(path: Path) -> None:
    """Fail if a drawing is no XML, or has elements or attributes that run programs."""
    parser = expat.ParserCreate()

    def element(name: str, attributes: dict[str, str]) -> None:
        assert name.lower() not in ("script", "img", "a", "foreignobject"), name
        assert not any(key.lower().startswith("on") for key in attributes), attributes

    parser.StartElementHandler = element
    parser.Parse(path.read_bytes(), True)


def judge_page(text: str) -> None:
    """Fail if HTML has an element of a name, or a character that is not printable."""
    assert all(c.isprintable() or c == "\n" for c in text)
    for harm in ("<script", "<img"):
        assert harm not in text.lower(), harm


def words_of(data: bytes) -> list[tuple[int, int]]:
    """Return begin and end of each word of a file."""
    return [match.span() for match in _WORD.finditer(data)]


def with_name(path: Path, place: int, name: str, *, everywhere: bool) -> bytes:
    """Return a file's content with a word replaced by ``name``, as its format writes it."""
    data = path.read_bytes()
    words = words_of(data)
    if not words:
        return data
    begin, end = words[place % len(words)]
    text = name
    if data.lstrip()[:1] in (b"{", b"["):
        text = json.dumps(name)[1:-1]
    elif data.lstrip()[:1] == b"<":
        text = name.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    new = text.encode("utf-8", "surrogatepass")
    return data.replace(data[begin:end], new) if everywhere else data[:begin] + new + data[end:]
