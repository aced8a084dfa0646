"""Recordings of channels: written by the simulator, read for a replay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from knotless.results import recording
from knotless.results.recording import Recording, RecordingError
from knotless.routing.plan import make_plan
from knotless.routing.request import PlanRequest
from knotless.simulation import Load, Scenario, simulate
from knotless.simulation import recorder as recorder_module
from knotless.simulation.recorder import Recorder
from knotless.topologies import load
from knotless.web.replay import replay

RING = Scenario(
    make_plan(load("ring,4"), PlanRequest.from_options(engine="dor", vcs=1, select="low-port")),
    "shift:2",
    Load("saturate"),
    duration_us=200_000.0,
)


@pytest.fixture(scope="module")
def recorded() -> Recording:
    recorder = Recorder(every_us=2000)
    return recorder.recording(simulate(RING, None, recorder.run))


def test_recording_changes_no_result() -> None:
    recorder = Recorder(every_us=777)
    assert simulate(RING, None, recorder.run).result_sha256 == simulate(RING).result_sha256


def test_a_recording_shows_the_knot_and_its_flows(recorded: Recording) -> None:
    report = simulate(RING).report
    assert report.deadlock is not None
    knotted = [frame for frame in recorded.frames if frame["knot"]]
    assert knotted[0]["at_us"] >= report.deadlock.since_ps / 1e6
    assert all(not frame["knot"] for frame in recorded.frames[: -len(knotted)])
    knot = knotted[-1]["knot"]
    assert knot["cycle"] == ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"]
    assert {"from": "h4", "to": "h2"}.items() <= knot["waiting"]["s1:2/0"][1].items()
    rows = {recorded.channels[row[0]]: row for row in knotted[-1]["rows"]}
    assert rows["s1:2"][2:4] == (0, 1000)
    assert rows["s1:2"][4] > 30_000


def test_loads_add_up_to_what_was_sent() -> None:
    recorder = Recorder(every_us=50_000)
    result = simulate(RING, None, recorder.run)
    frames = recorder.recording(result).frames
    sent = sum(row[2] for frame in frames for row in frame["rows"]) / 1000 * 50_000
    wire = result.report.channel_tx_bytes + 20 * result.report.channel_tx_frames
    assert sent == pytest.approx(float(wire.sum()) * 8 / 10, rel=0.03)


def test_a_long_recording_is_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder_module, "MAX_SAMPLES", 20)
    recorder = Recorder(every_us=100)
    thinned = recorder.recording(simulate(RING, None, recorder.run))
    assert 8 <= len(thinned.frames) <= 20
    times = [frame["at_us"] for frame in thinned.frames]
    assert times == sorted(set(times))


def test_what_is_written_is_read(recorded: Recording, tmp_path: Path) -> None:
    path = tmp_path / f"ring{recording.SUFFIX}"
    dropped = {**recorded.frames[0], "drops": [(3, 7, 2)], "down": [1, 2]}
    whole = Recording("a <script>", recorded.fabric, recorded.channels, [dropped, *recorded.frames])
    recording.write(path, whole)
    read = recording.read(path)
    assert read.title == "a <script>"
    assert read.frames[0] == dropped
    assert list(read.frames[1:]) == list(recorded.frames)
    still = replay(read)
    assert still.feed.picture()["kind"] == "replay"
    assert len(still.feed.history.timeline()["times"]) == len(whole.frames)
    first = json.loads(still.feed.history.frames(0, 1))[0]
    names = [channel["name"] for channel in still.feed.picture()["channels"]]
    assert [names[channel] for channel in first["down"]] == [read.channels[i] for i in (1, 2)]


def test_an_empty_recording_is_one(tmp_path: Path, recorded: Recording) -> None:
    path = tmp_path / f"empty{recording.SUFFIX}"
    recording.write(path, Recording("empty", recorded.fabric, recorded.channels, []))
    assert recording.read(path).frames == []


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"channels": ["s1:2"]},
        {"at_us": []},
        {"at_us": ["x"] * 1000},
        {"knots": {"3": {"since_us": 1}}},
        {"knots": None},
    ],
)
def test_damaged_recordings_are_refused_in_one_line(
    recorded: Recording, tmp_path: Path, change: dict[str, Any]
) -> None:
    import pyarrow.parquet as pq

    path = tmp_path / f"bad{recording.SUFFIX}"
    recording.write(path, recorded)
    table = pq.read_table(path)
    about = json.loads(table.schema.metadata[b"knotless"])
    table = table.replace_schema_metadata({b"knotless": json.dumps({**about, **change})})
    pq.write_table(table, path)
    with pytest.raises(RecordingError, match="not a recording of channels: [^\n]*$"):
        recording.read(path)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"{}" * 100])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.parquet"
    path.write_bytes(content)
    with pytest.raises(RecordingError, match="other.parquet"):
        recording.read(path)


def test_a_recording_of_another_fabric_is_refused(recorded: Recording) -> None:
    channels = ["s9:9", *recorded.channels[1:]]
    with pytest.raises(RecordingError, match="no channel 's9:9'"):
        replay(Recording("x", recorded.fabric, channels, recorded.frames))
