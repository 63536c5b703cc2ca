"""An export is listed with everything else of a lake, and hides nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import headwater as hw
from headwater.cli import main


def test_it_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = hw.connect(tmp_path)
    lake.write("orders", [{"id": 1}, {"id": 2}])
    lake.export("out", "orders", refresh=True)
    assert main(["--json", "tables", str(tmp_path)]) == 0
    listed = {one["name"]: one for one in json.loads(capsys.readouterr().out)["tables"]}
    assert (listed["out"]["kind"], listed["out"]["rows"]) == ("export", 2)
    assert main(["tables", str(tmp_path)]) == 0
    capsys.readouterr()
    assert main(["--json", "status", str(tmp_path)]) == 0
    (one,) = json.loads(capsys.readouterr().out)["artefacts"]
    assert one["definition"] == "SELECT id FROM orders" and one["frontier"] == {"orders": 0}
    assert main(["--json", "refresh", str(tmp_path)]) == 0
    (one,) = json.loads(capsys.readouterr().out)["artefacts"]
    assert (one["name"], one["mode"]) == ("out", "noop")
    assert "out" in lake._repr_html_() and lake.tables() == ["orders"]
