"""Simulations with multipath: hashed flows keep one path and their order, sprayed frames do not."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from knotless.cli.main import main
from knotless.routing.plan import make_plan
from knotless.routing.request import Multipath
from knotless.simulation import Load, Result, Scenario, simulate
from knotless.topologies import load


def simulated(multipath: Multipath, seed: int = 1, spec: str = "fattree2,4") -> Result:
    plan = make_plan(load(f"{spec},rate=1000,delay=1"), multipath=multipath, hash_seed=seed)
    messages = Load("acknowledged", message_bytes=90_000)
    return simulate(Scenario(plan, "shift:4", messages, seed=seed))


def spines_used(result: Result) -> list[int]:
    """Return how many of the channels up of each leaf carried frames of full length."""
    frames = dict(zip(result.channels.names, result.report.channel_tx_bytes.tolist(), strict=True))
    return [sum(frames[f"s{leaf}:{port}"] > 1500 for port in range(5, 9)) for leaf in range(1, 5)]


@pytest.mark.parametrize("multipath", ["ecmp", "spray"])
def test_nothing_is_lost_and_a_seed_gives_one_result(multipath: Multipath) -> None:
    first, again, other = (simulated(multipath, seed) for seed in (1, 1, 2))
    assert first.lost_frames == 0
    assert int(first.report.flow_messages.sum()) == 16
    assert first.result_sha256 == again.result_sha256 != other.result_sha256


def test_sprayed_frames_take_every_link_up_in_equal_parts() -> None:
    result = simulated("spray")
    assert spines_used(result) == [4, 4, 4, 4]
    by_name = dict(
        zip(result.channels.names, result.report.channel_tx_frames.tolist(), strict=True)
    )
    up = np.array([by_name[f"s{leaf}:{port}"] for leaf in range(1, 5) for port in range(5, 9)])
    # 60 frames of each of four hosts over four links: 5 standard deviations of the binomial.
    assert (np.abs(up - up.mean()) < 5 * np.sqrt(240 * 3 / 16)).all()


def test_hashed_flows_collide_where_sprayed_frames_do_not() -> None:
    # Four flows of each leaf on four links: equal shares would be one for each.
    hashed = [simulated("ecmp", seed).summary()["complete_us"] for seed in (1, 2, 3)]
    assert min(hashed) > simulated("spray").summary()["complete_us"]


def test_the_command_says_whether_order_is_kept() -> None:
    words = ["simulate", "fattree2,4", "--pattern", "shift:4", "--message-bytes", "3000", "--json"]
    for multipath, order in (("ecmp", "kept"), ("spray", "not kept")):
        done = CliRunner().invoke(main, [*words, "--multipath", multipath])
        values = json.loads(done.stdout)
        assert (values["multipath"], values["order"]) == (multipath, order)
    assert "multipath" not in json.loads(CliRunner().invoke(main, words).stdout)
