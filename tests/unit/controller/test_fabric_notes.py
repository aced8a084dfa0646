"""The controller's log says what the file of its fabric has that is not read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support import REPOSITORY
from tests.support.service_alone import service_alone


def test_notes_of_the_fabric_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    shutil.copy(REPOSITORY / "tests" / "data" / "fabrics" / "directed-edges.graphml", tmp_path)
    path = tmp_path / "knotless.yaml"
    path.write_text("fabric: directed-edges.graphml\nengine: updown\n")
    service, _ = service_alone(path)
    assert len(service.state.desired.fabric.links) == 1
    assert "fabric: two opposite directed edges are one link" in caplog.messages
