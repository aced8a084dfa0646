"""Verdicts as JUnit XML, the form in which pipelines take the results of tests.

Each rule is a test case. It fails with the findings that count; a case of which all are accepted or
ignored is skipped.
"""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, SubElement, tostring

from knotless.base.files import write_whole
from knotless.cli.commands.check.gate import Gate
from knotless.verification.verdict_findings import RULES

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(file: str, name: str, gate: Gate) -> None:
    """Write what a check of the fabric ``name`` has found; raises KnotlessError."""
    write_whole(file, junit_of(name, gate))


def junit_of(name: str, gate: Gate) -> str:
    """Return the findings as the text of a JUnit file."""
    stops = gate.counted
    suite = Element("testsuite", name=f"knotless check {_text(name)}")
    cases = [rule for rule, (level, _) in RULES.items() if level != "note"]
    failures = skipped = 0
    for rule in cases:
        case = SubElement(suite, "testcase", classname="knotless.check", name=rule)
        of_rule = [one for one in gate.findings if one.rule == rule]
        counting = [one for one in of_rule if one in stops]
        if counting:
            failures += 1
            text = "\n".join(f"{one.identifier}: {one.text}" for one in counting)
            failure = SubElement(case, "failure", type=rule, message=RULES[rule][1])
            failure.text = _text(text)
        elif of_rule:
            skipped += 1
            names = ", ".join(one.identifier for one in of_rule)
            SubElement(case, "skipped", message=_text(f"accepted or ignored: {names}"))
    suite.set("tests", str(len(cases)))
    suite.set("failures", str(failures))
    suite.set("skipped", str(skipped))
    suite.set("errors", "0")
    suites = Element("testsuites")
    suites.append(suite)
    data: bytes = tostring(suites, encoding="utf-8", xml_declaration=True)
    return data.decode() + "\n"


def _text(text: str) -> str:
    """Return a text without the characters that XML does not have."""
    return _NOT_XML.sub("?", text)
