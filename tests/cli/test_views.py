"""`headwater views` and `headwater refresh`: how fresh views are, and bringing them forward."""

from __future__ import annotations

import argparse
import io
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import PATIENCE_S

import headwater as hw
from headwater.cli import main
from headwater.cli._listing import print_entries
from headwater.cli._screen import Screen
from headwater.observe.measure import cells

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def lake(tmp_path: Path) -> hw.Lake:
    lake = hw.connect(tmp_path)
    lake.write("t", [{"id": 1, "k": 1}])
    lake.view("a", "SELECT id, k FROM t")
    lake.view("b", "SELECT count(*) AS n FROM a", refresh=True)
    return lake


def words(lake: hw.Lake, verb: str, *more: str) -> list[str]:
    return [verb, lake.location, *more]


def as_json(lake: hw.Lake, capsys: Capture, code: int, verb: str, *more: str) -> Any:
    assert main(words(lake, verb, *more, "--json")) == code
    return json.loads(capsys.readouterr().out)


def test_views_and_their_freshness(lake: hw.Lake, capsys: Capture) -> None:
    assert main(words(lake, "views")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["name", "kind", "frontier", "freshness", "rows", "last", "refresh", "mode", "seconds"]
    assert "up to date" in lines[2] and "full" in lines[2]
    lake.table("t").append([{"id": 2, "k": 1}])
    lake.view("c", "SELECT k FROM t")
    assert main(words(lake, "views")) == 3
    a, b, c = capsys.readouterr().out.splitlines()[2:]
    assert "1 version behind `t`" in a and "`a` is 1 version behind `t`" in b and "never built" in c
    found = as_json(lake, capsys, 3, "views")["artefacts"]
    assert [(v["name"], v["stale"], v["lag"]) for v in found] == [
        ("a", True, {"t": 1}),
        ("b", True, {}),
        ("c", True, {}),
    ]
    assert found[1]["behind"] == [{"name": "a", "built": True, "lag": {"t": 1}}]
    last = found[0]["last_refresh"]
    assert (last["mode"], last["rows_in"], last["rows_out"]) == ("full", 1, 1) and last["seconds"] > 0
    assert found[2]["last_refresh"] is None and found[2]["rows"] is None and not found[2]["built"]


def test_no_views(tmp_path: Path, capsys: Capture) -> None:
    none = {"views": "no materialized views", "status": "no derived artefacts", "refresh": "nothing is derived"}
    for verb, said in none.items():
        assert main([verb, str(tmp_path)]) == 0
        assert capsys.readouterr() == ("", f"{said} in {tmp_path}\n")
        assert main([verb, str(tmp_path / "nowhere")]) == 1
        capsys.readouterr()


def test_a_damaged_view_does_not_hide_the_others(lake: hw.Lake, capsys: Capture) -> None:
    from headwater.lake import snapshot

    log = Path(lake.location) / "b" / "_delta_log" / "00000000000000000001.json"
    log.write_text(log.read_text().replace('\\"published\\":1', '\\"published\\":\\"x\\"'))
    snapshot.forget(lake.table("b").storage)
    found = as_json(lake, capsys, 1, "views")["artefacts"]
    assert [v["name"] for v in found] == ["a", "b"] and found[1]["error"]["code"].startswith("E5")
    assert main(words(lake, "views")) == 1 and "[E5" in capsys.readouterr().out


def test_tables_tell_views_from_tables(lake: hw.Lake, capsys: Capture) -> None:
    lake.view("c", "SELECT k FROM t")
    found = as_json(lake, capsys, 0, "tables")["tables"]
    assert [(one["name"], one["kind"], one["rows"]) for one in found] == [
        ("a", "view", 1),
        ("b", "view", 1),
        ("c", "view", None),
        ("t", "table", 1),
    ]
    assert lake.tables() == ["t"] and lake.views() == ["a", "b", "c"]
    assert [row["tableName"] for row in lake.sql("SHOW TABLES").to_pylist()] == ["t"]
    assert [row["viewName"] for row in lake.sql("SHOW VIEWS").to_pylist()] == ["a", "b", "c"]


def test_refresh_all_in_order(lake: hw.Lake, capsys: Capture) -> None:
    lake.table("t").append([{"id": 2, "k": 1}])
    assert main(words(lake, "refresh")) == 0
    out, err = capsys.readouterr()
    assert [line.split()[:2] for line in out.splitlines()[2:]] == [["a", "incremental"], ["b", "incremental"]]
    assert err == "" and main(words(lake, "views")) == 0
    assert lake.view("b").to_pylist() == [{"n": 2}]


def test_refresh_some(lake: hw.Lake, capsys: Capture) -> None:
    lake.table("t").append([{"id": 2, "k": 1}])
    alone = as_json(lake, capsys, 3, "refresh", "b", "--no-cascade")["artefacts"]
    assert [(v["name"], v["mode"], v["behind"][0]["name"]) for v in alone] == [("b", "noop", "a")]
    both = as_json(lake, capsys, 0, "refresh", "b", "--full")["artefacts"]
    assert [(v["name"], v["mode"]) for v in both] == [("a", "incremental"), ("b", "full")]
    assert as_json(lake, capsys, 1, "refresh", "nope")["error"]["code"] == "E1601"
    assert as_json(lake, capsys, 1, "refresh", "t")["error"]["code"] == "E1601"
    assert main(words(lake, "refresh", "--cascade")) == 2


def test_one_failure_does_not_stop_the_others(lake: hw.Lake, capsys: Capture) -> None:
    lake.view("bad", "SELECT 10 div id AS x FROM t", refresh=True)
    lake.view("reader", "SELECT x FROM bad", refresh=True)
    lake.table("t").append([{"id": 0, "k": 1}])
    found = as_json(lake, capsys, 1, "refresh")["artefacts"]
    assert {v["name"]: v.get("mode") for v in found} == {
        "a": "incremental",
        "b": "incremental",
        "bad": None,
        "reader": None,
    }
    assert found[2]["error"]["code"] and found[3]["skipped"] == ["bad"]
    assert main(words(lake, "refresh")) == 1
    out, err = capsys.readouterr()
    assert "reader  skipped" in out and "bad was not refreshed:\nerror[" in err
    assert not lake.refresh().ok and "reader" in lake.refresh()._repr_html_()


def test_describe_extended(lake: hw.Lake) -> None:
    lake.table("t").append([{"id": 2, "k": 1}])
    facts = {row["col_name"]: row["data_type"] for row in lake.sql("DESCRIBE EXTENDED b").to_pylist()}
    assert facts["Type"] == "MATERIALIZED VIEW" and facts["View Text"] == "SELECT count(*) AS n FROM a"
    assert (facts["Sources"], facts["Frontier"], facts["Refresh Policy"]) == ("a", "a@1", "auto")
    assert facts["Lag"] == "`a` is 1 version behind `t`"
    assert ", full, " in facts["Last Refresh"] and "1 rows in, 1 rows out" in facts["Last Refresh"]
    lake.view("c", "SELECT k FROM t")
    unbuilt = {row["col_name"]: row["data_type"] for row in lake.sql("DESCRIBE EXTENDED c").to_pylist()}
    assert (unbuilt["Frontier"], unbuilt["Lag"], unbuilt["Last Refresh"]) == ("never built", "never built", "")
    table = {row["col_name"] for row in lake.sql("DESCRIBE EXTENDED t").to_pylist()}
    assert "View Text" not in table


def test_the_last_refresh_outlives_the_process_and_upkeep(lake: hw.Lake) -> None:
    lake.table("t").append([{"id": 2, "k": 1}])
    lake.refresh()
    lake.view("a").optimize()
    again = hw.connect(lake.location).status("a")[0]
    assert again.last is not None
    assert (again.last.mode, again.last.rows_in, again.last.rows_out) == ("incremental", 1, 1)


def test_pages_are_escaped(lake: hw.Lake) -> None:
    evil = "<script>alert(1)</script>"
    view = lake.view("evil", f"SELECT id, '{evil}' AS x FROM t", refresh=True)
    lake.table("t").append([{"id": 2, "k": 1}])
    shown = [lake._repr_html_(), view._repr_html_(), view.plan()._repr_html_(), view.verify()._repr_html_()]
    shown += [view.refresh()._repr_html_(), lake.view("b").refresh()._repr_html_()]
    from headwater.lake import modify

    modify.delete(view.table.storage, "id = 1")
    shown.append(view.verify()._repr_html_())
    assert "differs at" in shown[-1] and "alert(1)" in shown[-1]
    for page in shown:
        assert page.startswith("<div>") and page.endswith("</div>") and "<script" not in page
        assert page.count("<tr>") == page.count("</tr>") and len(page) < 3000


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("width", [20, 40, 80, 120, 300])
def test_listings_fit_every_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    rows = [
        ("12", "2026-01-01 00:00:00", "REFRESH MATERIALIZED VIEW", "frontier=orders@42 cards@17", "numInsertedRows=5"),
        ("0", "2026-01-01 00:00:00", "CREATE", "query=SELECT '日本' AS x, " + "y" * 90, ""),
    ]
    out = Terminal()
    headings = ("version", "timestamp", "operation", "parameters", "metrics")
    print_entries(Screen(out=out), headings, rows, right=(0,), head=3)
    lines = out.getvalue().splitlines()
    assert max(map(cells, lines)) <= width
    joined = "".join(out.getvalue().split())
    for text in (text for row in rows for text in row):
        assert "".join(text.split()) in joined, "nothing is left out"
    assert ("version" in lines[0]) == (width == 300), "a table where there is room"


def test_history_of_a_view_fits(lake: hw.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    from headwater.cli.history import run

    monkeypatch.setenv("NO_COLOR", "1")
    for width in (30, 60, 90):
        monkeypatch.setenv("COLUMNS", str(width))
        out = Terminal()
        arguments = argparse.Namespace(lake=lake.location, table="b", limit=None)
        assert run(arguments, Screen(out=out)) == 0
        lines = out.getvalue().splitlines()
        assert max(map(len, lines)) <= width and "SELECT count(*)" in " ".join(out.getvalue().split())


def test_errors_name_commands(lake: hw.Lake, capsys: Capture) -> None:
    lake.view("c", "SELECT k FROM t")
    lake.view("d", "SELECT k FROM c")
    first = f"headwater refresh {lake.location} c first, or refresh `d` without --no-cascade, which does that"
    found = as_json(lake, capsys, 1, "refresh", "d", "--no-cascade")["artefacts"]
    assert (found[0]["error"]["code"], found[0]["error"]["hint"]) == ("E1610", first)
    assert main(words(lake, "refresh", "d", "--no-cascade")) == 1
    assert f"hint: {first}" in capsys.readouterr().err
    assert main(words(lake, "refresh", "c")) == 0 and main(words(lake, "refresh", "d", "--no-cascade")) == 0


_WATCH = ("--watch", "--interval", "0.02")


@contextmanager
def watching(lake: hw.Lake, *more: str) -> Iterator[tuple[subprocess.Popen[str], Iterator[Any]]]:
    """A process that watches a lake, and its lines of JSON."""
    command = [sys.executable, "-m", "headwater.cli", *words(lake, "refresh", *more, *_WATCH, "--json")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, (json.loads(line)["artefacts"] for line in process.stdout)
        finally:
            process.kill()


@pytest.mark.long
def test_a_lake_without_a_project_is_watched(lake: hw.Lake) -> None:
    lake.write("s", [{"id": 1}])
    lake.view("apart", "SELECT 10 div id AS x FROM s")
    with watching(lake) as (process, reports):
        first = next(reports)
        assert [(one["name"], one["mode"]) for one in first] == [("a", "noop"), ("apart", "full"), ("b", "noop")]
        lake.table("t").append([{"id": 2, "k": 1}])
        second = next(reports)
        assert [(one["name"], one["mode"]) for one in second] == [("a", "incremental"), ("b", "incremental")]
        lake.table("s").append([{"id": 0}])
        third = next(reports)
        assert [one["name"] for one in third] == ["apart"] and third[0]["error"]["code"]
        lake.table("s").delete("id = 0")
        lake.table("s").append([{"id": 5}])
        assert any(one.get("mode") == "incremental" for one in next(reports)), (
            "it is tried again when its table changes"
        )
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert "watching" in said and "apart was not refreshed" not in said
    assert lake.view("b").to_pylist() == [{"n": 2}]


@pytest.mark.long
def test_a_watch_of_one_view_leaves_the_others_alone(lake: hw.Lake) -> None:
    lake.view("c", "SELECT k FROM t", refresh=True)
    with watching(lake, "B") as (process, reports):
        assert [one["name"] for one in next(reports)] == ["b"]
        lake.table("t").append([{"id": 2, "k": 1}])
        assert [one["name"] for one in next(reports)] == ["a", "b"]
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert lake.view("c").rows == 1
    assert main(words(lake, "refresh", "nope", "--watch")) == 1


@pytest.mark.parametrize(
    "options", [["--strict"], ["--metrics", "0"], ["--log-json", "--watch"], ["--workers", "2"], ["--wait", "1m"]]
)
def test_options_of_a_project_are_refused_for_a_lake(lake: hw.Lake, capsys: Capture, options: list[str]) -> None:
    lake.table("t").append([{"id": 2, "k": 1}])
    error = as_json(lake, capsys, 2, "refresh", *options)["error"]
    assert error["code"] == "E8005" and f"`{options[0]}`" in error["message"]
    assert lake.view("b").to_pylist() == [{"n": 1}]
