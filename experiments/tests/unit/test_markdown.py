"""Generated pages wrap at 100 columns, but not within code or links."""

from __future__ import annotations

from knotless.results import markdown


def test_paragraphs_and_list_items_are_wrapped_and_tables_are_not() -> None:
    row = "| " + "cell " * 40 + "|"
    item = "- " + "word " * 30 + "end"
    lines = markdown.page([row, "", "# " + "title " * 20, item]).splitlines()
    assert lines[:3] == [row, "", "# " + "title " * 20]
    assert lines[3].startswith("- word")
    assert len(lines) == 5
    assert lines[4].startswith("  word")
    assert lines[4].endswith("word end")
    assert all(len(line) <= markdown.WIDTH for line in lines[3:])


def test_code_and_links_stay_on_one_line() -> None:
    code = "`knotless run barrier --hosts 2,4`"
    link = "[the stored runs](runs)"
    for before in range(60, 100):
        lines = markdown.wrapped(f"{'x' * before} {code} and {link}, and so on.")
        assert any(code in line for line in lines)
        assert any(f"{link}," in line for line in lines)
        assert " ".join(lines) == f"{'x' * before} {code} and {link}, and so on."
