"""`headwater tables` and `headwater history`: what the log knows, for people and for programs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import headwater as hw
from headwater.cli import main

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def lake(tmp_path: Path) -> str:
    lake = hw.connect(tmp_path)
    lake.write("sales.orders", [{"id": 1, "day": "a"}, {"id": 2, "day": "b"}], partition_by=["day"])
    lake.write("cards", [{"id": 1}])
    lake.table("cards").append([{"id": 2}, {"id": 3}])
    lake.table("cards").delete("id = 1")
    return str(tmp_path)


def test_tables(lake: str, capsys: Capture) -> None:
    assert main(["tables", lake]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    plain = re.sub(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "<the time of writing>", re.sub(r" *[0-9.]+ K?i?B", " <size>", out)
    )
    lines = [re.split(r" {2,}| (?=<)", line.strip()) for line in plain.splitlines()]
    assert lines[0] == ["name", "kind", "version", "rows", "files", "size", "last modified", "partitioned by"]
    assert lines[2][:4] == ["cards", "table", "2", "2"]
    assert lines[3] == ["sales.orders", "table", "0", "2", "2", "<size>", "<the time of writing>", "day"]


def test_tables_as_json(lake: str, capsys: Capture) -> None:
    assert main(["tables", lake, "--json"]) == 0
    cards, orders = json.loads(capsys.readouterr().out)["tables"]
    detail = hw.connect(lake).table("cards").detail()
    assert cards == {
        "name": "cards",
        "kind": "table",
        "version": 2,
        "rows": 2,
        "files": detail["num_files"],
        "size_bytes": detail["size_bytes"],
        "last_modified": detail["last_modified"].isoformat(timespec="milliseconds"),
        "partitioned_by": [],
    }
    assert orders["partitioned_by"] == ["day"]


def test_a_damaged_table_does_not_hide_the_others(lake: str, capsys: Capture) -> None:
    (Path(lake) / "cards/_delta_log/00000000000000000002.json").write_text("{")
    assert main(["tables", lake, "--json"]) == 1
    cards, orders = json.loads(capsys.readouterr().out)["tables"]
    assert cards["error"].startswith("[E5001]")
    assert orders["rows"] == 2
    assert main(["tables", lake]) == 1
    assert "[E5001]" in capsys.readouterr().out


def test_no_tables(tmp_path: Path, capsys: Capture) -> None:
    assert main(["tables", str(tmp_path)]) == 0
    assert capsys.readouterr() == ("", f"no tables in {tmp_path}\n")
    assert main(["tables", str(tmp_path / "nowhere")]) == 1


def test_history(lake: str, capsys: Capture) -> None:
    assert main(["history", lake, "cards"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["version", "timestamp", "operation", "parameters", "metrics"]
    assert [line.split()[0] for line in lines[2:]] == ["2", "1", "0"]
    assert "DELETE" in lines[2]
    assert "id = 1" in lines[2]
    assert main(["history", lake, "cards", "--limit", "1"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_history_as_json(lake: str, capsys: Capture) -> None:
    assert main(["history", lake, "cards", "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)["history"]
    assert entries == [entry.as_dict() for entry in hw.connect(lake).table("cards").history()]


def test_history_of_nothing(lake: str, capsys: Capture) -> None:
    assert main(["history", lake, "card"]) == 1
    assert "did you mean `cards`?" in capsys.readouterr().err
    assert main(["history", lake, "cards", "--limit", "0"]) == 1
    assert main(["history", lake]) == 2
