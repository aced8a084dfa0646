"""End points: message classes, their bounds, and files of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from knotless.base.errors import EndpointError
from knotless.traffic.endpoint_presets import PRESETS, endpoints_named, preset
from knotless.traffic.endpoints import MAX_MESSAGES, EndpointModel, read

CHAIN = {
    "request": {"sends_before_taking": ["reply"], "outstanding": 2, "reserve": 6},
    "reply": {"sends_before_taking": ["ack"], "reserve": 5},
    "ack": {},
}


def model(classes: object) -> EndpointModel:
    return EndpointModel.from_values({"classes": classes}, "test")


@pytest.mark.parametrize("name", PRESETS)
def test_presets_say_what_is_reserved_and_are_read_as_files(name: str, tmp_path: Path) -> None:
    file = tmp_path / "endpoints.yaml"
    file.write_text(preset(name).text)
    assert read(file).classes == preset(name).classes
    assert PRESETS[name].reserved
    assert PRESETS[name].source
    assert preset(name).takes_all == (name == "sink")


def test_rdma_is_taken_at_any_number_of_hosts() -> None:
    for name in ("rdma-read", "rdma-write"):
        assert not [wait for hosts in (1, 2, 100) for wait in preset(name).waits(hosts)]


def test_answers_are_as_many_as_what_they_are_sent_for() -> None:
    chain = model(CHAIN)
    assert [chain.outstanding(name) for name in CHAIN] == [2, 2, 2]
    assert [*chain.waits(4)] == [("reply", "ack")]
    assert [reserve.text for reserve in chain.reserves(4)] == [
        "3 hosts x 2 outstanding = 6 <= reserve of 6: each request is taken before its reply is"
        " sent",
        "3 hosts x 2 outstanding = 6 > reserve of 5: a reply can wait for its ack to be sent",
    ]
    assert [*chain.waits(3)] == []
    assert [*preset("request-reply").waits(1)] == []
    twice = model({"a": {"sends_before_taking": ["b", "b"], "outstanding": 2}, "b": {}})
    assert twice.outstanding("b") == 4


def test_what_is_sent_for_itself_has_no_bound() -> None:
    relay = model({"data": {"sends_before_taking": ["data"], "reserve": MAX_MESSAGES}})
    assert relay.outstanding("data") is None
    assert [*relay.waits(2)] == [("data", "data")]


@pytest.mark.parametrize(
    ("classes", "text"),
    [
        ({}, "classes: dictionary should have at least 1 item"),
        ({"a b": {}}, "classes.a b.[key]: string should match pattern"),
        ({"a": {"priority": 8}}, "classes.a.priority: 8 is not below 8"),
        ({"a": {"reserve": -1}}, "classes.a.reserve: -1 is not at least 0"),
        ({"a": {"outstanding": 0}}, "classes.a.outstanding: 0 is not at least 1"),
        ({"a": {"sends": ["a"]}}, "unknown key 'classes.a.sends'"),
        (
            {"a": {"sends_before_taking": ["zz"]}, "b": {}},
            "classes.a.sends_before_taking: there is no class 'zz'; known are a, b",
        ),
        (
            {"a": {"sends_before_taking": ["b"]}, "b": {"outstanding": 1}},
            "classes.b.outstanding: messages of b are sent for others alone",
        ),
    ],
)
def test_mistakes_are_named_with_their_key(classes: object, text: str) -> None:
    with pytest.raises(EndpointError) as error:
        model(classes)
    assert str(error.value).startswith(f"test: {text}")
    assert "\n" not in str(error.value)


def test_a_word_is_a_preset_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text("classes: {data: {}}\n")
    assert endpoints_named(str(file)).name == str(file)
    with pytest.raises(EndpointError, match="did you mean 'rdma-read'"):
        endpoints_named("rdma-raed")
    with pytest.raises(EndpointError, match="none.yaml"):
        endpoints_named(str(tmp_path / "none.yaml"))
