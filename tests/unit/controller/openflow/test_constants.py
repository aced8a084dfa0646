"""Our constants are those of two other implementations of OpenFlow 1.3."""

from __future__ import annotations

import pytest
from c65of.ofproto import consts as c65of_constants
from ryu.ofproto import ofproto_common
from ryu.ofproto import ofproto_v1_3 as ryu_constants

from knotless.controller.openflow import constants as ofp
from knotless.controller.openflow.error_names import error_name

NUMBERS = {name: value for name, value in vars(ofp).items() if name.startswith(("OFP", "ONF_"))}

del NUMBERS["ONF_ROLE_STATUS"]  # of an extension that neither has


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_those_of_both(name: str) -> None:
    modules = (ryu_constants, ofproto_common, c65of_constants)
    others = [getattr(module, name) for module in modules if hasattr(module, name)]
    assert len(others) >= 2
    assert set(others) == {NUMBERS[name]}


def test_fields_of_matches_are_those_of_ryu() -> None:
    basic = [each for each in ryu_constants.oxm_types if each.oxm_type >> 7 == 0x8000]
    assert tuple((each.name, each.type.size) for each in basic) == ofp.OXM_FIELDS
    assert [each.oxm_type & 0x7F for each in basic] == list(range(len(basic)))


def test_errors_have_the_names_that_ryu_gives_them() -> None:
    named = 0
    for kind in range(16):
        for code in range(20):
            by_ryu = ryu_constants.ofp_error_code_to_str(kind, code)
            if by_ryu.startswith("Unknown"):
                assert error_name(kind, code) == f"error {kind}({code})"
            else:
                assert error_name(kind, code) == by_ryu
                named += 1
    assert named > 100
