"""The command line inside a project's folder: the lake may be left out, and exit codes say how it went."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import PATIENCE_S

import headwater as hw
from headwater.cli import main
from headwater.pipeline.schema import schema_text

MOMENT = datetime(2025, 1, 1, tzinfo=UTC)
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> Path:
    assert main(["init", str(tmp_path / "shop")]) == 0
    monkeypatch.chdir(tmp_path / "shop" / "views")
    capsys.readouterr()
    return tmp_path / "shop"


def as_json(capsys: Capture, code: int, *words: str) -> Any:
    assert main([*words, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_a_project_from_nothing_to_history(shop: Path, capsys: Capture) -> None:
    assert [one["mode"] for one in as_json(capsys, 0, "plan")["nodes"]] == ["full"] * 4
    assert as_json(capsys, 3, "status")["ok"] is False
    run = as_json(capsys, 0, "refresh")
    assert run["ok"] and run["frontier"] == {"notes": 0, "orders": 0}
    assert as_json(capsys, 0, "status")["ok"] is True
    assert {row["node"] for row in as_json(capsys, 0, "history")["history"]} == {one["name"] for one in run["nodes"]}
    assert as_json(capsys, 0, "why", "customer_online")["plan"]["mode"] == "noop"
    assert main(["refresh"]) == 0
    assert "noop" in capsys.readouterr().out


def test_lineage(shop: Path, capsys: Capture) -> None:
    assert main(["lineage", "--svg", str(shop / "picture.svg")]) == 0
    assert "customer_spend" in capsys.readouterr().out and (shop / "picture.svg").read_text().startswith("<svg")
    assert main(["lineage", "customer_online.total"]) == 0
    assert capsys.readouterr().out == "customer_online.total: customer_spend.total, orders.amount\n"
    assert main(["lineage", str(shop), "customer_spend"]) == 0
    assert "customer_spend.total: orders.amount\n" in capsys.readouterr().out
    said = as_json(capsys, 0, "lineage", "Customer_Spend.total")
    assert said["columns"] == {"total": [{"node": "orders", "column": "amount"}]}
    nodes = {one["name"]: one["reads"] for one in as_json(capsys, 0, "lineage")["nodes"]}
    assert nodes["customer_online"] == ["customer_spend"] and nodes["orders"] == []
    assert as_json(capsys, 0, "lineage", "orders")["columns"] == {}
    assert main(["lineage", "customer_spend.nope"]) == 1 and "customer_spend.nope" in capsys.readouterr().err
    assert main(["lineage", "nope"]) == 1


def test_editors_find_the_schema(shop: Path, capsys: Capture) -> None:
    first = (shop / "headwater.yaml").read_text().splitlines()[0]
    place = first.removeprefix("# yaml-language-server: $schema=")
    schema = shop / place
    assert schema.read_text() == schema_text()
    schema.write_text("{}")  # that of another version
    assert main(["plan"]) == 0
    assert schema.read_text() == schema_text()


def test_verbs_of_a_lake_find_the_project(shop: Path, capsys: Capture) -> None:
    main(["refresh"])
    capsys.readouterr()
    assert main(["tables"]) == 0 and "customer_spend" in capsys.readouterr().out
    assert main(["sql", "-c", "SELECT count(*) AS n FROM headwater.ledger", "--format", "csv"]) == 0
    assert capsys.readouterr().out.split()[1] == "4"
    assert main(["lookup", "customer_online", "3"]) == 0
    assert main(["history", "orders"]) == 0 and "CREATE TABLE" in capsys.readouterr().out
    assert main(["history", str(shop / "lake"), "orders"]) == 0
    assert main(["tables", str(shop)]) == 0
    capsys.readouterr()
    assert main(["serve", "--check"]) == 0 and "customer_online" in capsys.readouterr().out


def test_the_lake_is_left_out_behind_an_action(shop: Path, capsys: Capture) -> None:
    main(["refresh"])
    capsys.readouterr()
    for words in (["index", "status"], ["index", "status", "notes_search"], ["index", "--full", "refresh"]):
        assert [one["name"] for one in as_json(capsys, 0, *words)["indexes"]] == ["notes_search"]


def test_what_is_missing_does_not_name_the_lake(shop: Path, capsys: Capture) -> None:
    for words, missing in ((["why"], "NODE"), (["forget", "orders", "--plan"], "COLUMN=VALUE")):
        assert main(words) == 2
        assert f"required: {missing}\n" in capsys.readouterr().err


def test_exit_codes(shop: Path, capsys: Capture) -> None:
    assert main(["refresh", "nope"]) == 1
    assert main(["refresh", "--nope"]) == 2
    main(["refresh"])
    hw.connect(shop / "lake").table("orders").delete("order_id = 1")
    assert main(["status"]) == 0  # within its target
    (shop / "headwater.yaml").write_text((shop / "headwater.yaml").read_text().replace("1 hour", "1 ms"))
    assert main(["status"]) == 3 and main(["why", "customer_spend"]) == 3
    (shop / "views" / "customer_spend.sql").write_text("-- polcy: auto\nSELECT 1 AS a FROM orders")
    capsys.readouterr()
    assert main(["plan"]) == 1
    said = capsys.readouterr().err
    assert "unknown key `polcy`" in said and "views/customer_spend.sql:1:4" in said and "did you mean `policy`" in said


def test_profiles(shop: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["plan", "--profile", "clster"]) == 1
    assert "did you mean `cluster`" in capsys.readouterr().err
    text = (shop / "headwater.yaml").read_text().replace("local: {}", "local: {}\n  other: {lake: other}")
    (shop / "headwater.yaml").write_text(text)
    hw.connect(shop / "other").write("orders", [{"order_id": 1, "customer_id": 1, "amount": 2.0, "ordered_at": MOMENT}])
    monkeypatch.setenv("HEADWATER_PROFILE", "other")
    assert main(["tables"]) == 0 and "notes" not in capsys.readouterr().out


def test_outside_of_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["plan", "."]) == 1 and "headwater init" in capsys.readouterr().err


def test_help_loads_no_project() -> None:
    code = "import sys; from headwater.cli import main; main(['--help']); print([m for m in sys.modules if 'pipeline' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.long
def test_a_watch_ends_gracefully(shop: Path) -> None:
    command = [sys.executable, "-m", "headwater.cli", "refresh", str(shop), "--watch", "--json", "--log-json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        first = json.loads(watching.stdout.readline())
        assert first["ok"] and len(first["nodes"]) == 4
        hw.connect(shop / "lake").table("orders").delete("order_id = 1")
        second = json.loads(watching.stdout.readline())
        assert [one["name"] for one in second["nodes"] if one["state"] == "done"]
        assert "notes_search" not in {one["name"] for one in second["nodes"]}
        watching.send_signal(signal.SIGTERM)
        _, said = watching.communicate(timeout=PATIENCE_S)
    assert watching.returncode == 0
    states = [json.loads(line).get("state") for line in said.splitlines() if line.startswith("{")]
    assert "running" in states and "done" in states
