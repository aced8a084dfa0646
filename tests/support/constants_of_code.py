"""Figures on pages compared with the constants of the code that they state."""

from __future__ import annotations

import ast
import operator
import re

from tests.support import REPOSITORY

UNITS = {
    **{"": 1.0, "%": 0.01, "bytes": 1.0, "kB": 1e3, "MB": 1e6, "KiB": 2.0**10, "MiB": 2.0**20},
    **{"Mbit/s": 1e6, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0},
}
"""In seconds, bytes, bit/s or a share of one."""
SUFFIXES = {"_us": 1e-6, "_ms": 1e-3, "_mbps": 1e6, "_mb": 1e6}
"""Factors by the ends of names of numbers that are not in these units."""
NAMED = {"MICROSECOND": 1e-6, "MILLISECOND": 1e-3, "from_micros": 1e-6, "from_millis": 1e-3}
OPERATORS = {ast.Mult: operator.mul, ast.LShift: operator.lshift, ast.Pow: operator.pow}


def figure(text: str) -> float:
    """Return the value of a figure of a page, such as ``16 KiB``."""
    number, _, unit = text.partition(" ")
    return float(number.replace(",", "")) * UNITS[unit]


def constant(path: str, name: str) -> float:
    """Return the value of the first definition of a name in a file of the repository."""
    text = (REPOSITORY / path).read_text()
    begin = rf"\b{name}\b(?:(?:: [^=\n]+?)? ?=|:) ?"
    definition = re.search(rf"{begin}((?:Duration::\w+\()?\d[^,;}}#\n]*)", text)
    assert definition is not None, f"{path} defines no {name}"
    factor, expression = 1.0, definition[1].replace("_", "")
    for word, unit in NAMED.items():
        if word.replace("_", "") in expression:
            factor = unit
            expression = re.sub(rf"\*? ?{word.replace('_', '')}\b", "", expression)
    if factor == 1.0:
        factor = next((f for end, f in SUFFIXES.items() if name.lower().endswith(end)), 1.0)
    expression = expression.removeprefix("Duration::").strip(" ()")
    return factor * _value(ast.parse(expression, mode="eval").body)


def _value(node: ast.expr) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    assert isinstance(node, ast.BinOp), ast.dump(node)
    return float(OPERATORS[type(node.op)](_value(node.left), _value(node.right)))
