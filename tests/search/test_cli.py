"""`headwater search` and `headwater index`: tables and JSON, highlights, several indexes, and exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.cli import main
from headwater.lakehouse import Lake

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = hw.connect(tmp_path)
    lake.write(
        "notes",
        [
            {"id": 1, "body": "Card <stolen>, customer disputes", "n": 5},
            {"id": 2, "body": "Refund for a card", "n": 7},
            {"id": 3, "body": None, "n": None},
        ],
    )
    lake.write("mails", [{"id": 9, "subject": "a stolen card"}])
    lake.index("notes_ix", "notes", text="body", numeric="n", refresh=True)
    lake.index("mails_ix", "mails", text="subject", refresh=True)
    return lake


def ask(lake: Lake, capsys: Capture, *words: str, code: int = 0) -> tuple[list[str], str]:
    verb, *more = words
    assert main([verb, *([more.pop(0)] if verb == "index" else []), lake.location, *more]) == code
    shown = capsys.readouterr()
    return shown.out.splitlines(), shown.err


def as_json(lake: Lake, capsys: Capture, *words: str, code: int = 0) -> Any:
    return json.loads("\n".join(ask(lake, capsys, *words, "--json", code=code)[0]))


def test_a_table_with_what_was_found_marked(lake: Lake, capsys: Capture) -> None:
    lines, said = ask(lake, capsys, "search", "notes_ix", "stolen OR refund", "--columns", "id,body,n")
    assert lines[0].split() == ["score", "id", "body", "n"] and len(lines) == 4
    assert any("«stolen»" in line and "<" not in line.replace("<«", "") for line in lines)
    assert any("«Refund» for a card" in line for line in lines)
    assert "2 of 2 rows at notes@0" in said


def test_json_with_highlights_scores_and_what_was_left_out(lake: Lake, capsys: Capture) -> None:
    found = as_json(lake, capsys, "search", "notes_ix", "stolen", "--columns", "id,body")
    assert (found["index"], found["query"], found["frontier"], found["total"]) == ("notes_ix", "stolen", "notes@0", 1)
    (hit,) = found["hits"]
    assert hit["row"] == {"id": 1, "body": "Card <stolen>, customer disputes"} and hit["score"] > 0
    assert "<b>stolen</b>" in hit["snippets"]["body"] and "&lt;" in hit["snippets"]["body"]
    lenient = as_json(lake, capsys, "search", "notes_ix", "(card", "--lenient", "-k", "1")
    assert lenient["total"] == 2 and len(lenient["hits"]) == 1 and lenient["ignored"][0]["text"] == "("
    _, said = ask(lake, capsys, "search", "notes_ix", "(card", "--lenient")
    assert "left out: '('" in said


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        (["card", "--offset", "1"], 1),
        (["stolen card", "--and"], [1]),
        (["*", "--filter", "n > 5"], [2]),
        (["*", "--order-by", "n", "--descending"], [2, 1, 3]),
        (["card", "--version", "0"], 2),
    ],
)
def test_options_are_those_of_search(words: list[str], ids: Any, lake: Lake, capsys: Capture) -> None:
    found = [hit["row"]["id"] for hit in as_json(lake, capsys, "search", "notes_ix", *words)["hits"]]
    assert found == ids if isinstance(ids, list) else len(found) == ids


def test_counts(lake: Lake, capsys: Capture) -> None:
    assert ask(lake, capsys, "search", "notes_ix", "card", "--count")[0] == ["2"]
    assert as_json(lake, capsys, "search", "notes_ix", "card", "--count", "--filter", "n = 5")["count"] == 1


def test_several_indexes(lake: Lake, capsys: Capture) -> None:
    lines, said = ask(lake, capsys, "search", "notes_ix,mails_ix", "stolen", "--columns", "id,subject")
    assert lines[0].split() == ["index", "score", "id", "subject"] and len(lines) == 4
    assert any("a «stolen» card" in line for line in lines) and "1 of notes_ix, 1 of mails_ix" in said
    found = as_json(lake, capsys, "search", "notes_ix,mails_ix", "stolen")
    assert found["totals"] == {"notes_ix": 1, "mails_ix": 1} and found["frontier"] == "mails@0 notes@0"
    assert {hit["index"]: hit["row"]["id"] for hit in found["hits"]} == {"notes_ix": 1, "mails_ix": 9}
    _, said = ask(lake, capsys, "search", "notes_ix,mails_ix", "stolen", "--count", code=1)
    assert "error[E1001]" in said and "one index" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nosuch", "card"], "nosuch"),
        (["notes_ix", "(card"], "never closed"),
        (["notes_ix", "card", "--columns", "nosuch"], "nosuch"),
        (["notes_ix", "card", "-k", "-1"], "`k` is -1"),
    ],
)
def test_errors_say_what_to_do(words: list[str], message: str, lake: Lake, capsys: Capture) -> None:
    lines, said = ask(lake, capsys, "search", *words, code=1)
    assert not lines and message in said and "hint: " in said and "Traceback" not in said


def test_status_refresh_merge_and_vacuum(lake: Lake, capsys: Capture) -> None:
    assert "100%" in "".join(ask(lake, capsys, "index", "status")[0])
    lake.table("notes").append([{"id": 4, "body": "more", "n": 1}])
    found = as_json(lake, capsys, "index", "status", code=3)["indexes"]
    assert [(one["name"], one["coverage"], one["missing_rows"]) for one in found] == [
        ("mails_ix", 1.0, 0),
        ("notes_ix", 0.75, 1),
    ]
    (done,) = as_json(lake, capsys, "index", "refresh", "notes_ix")["indexes"]
    assert done["coverage"] == 1.0 and done["splits"] == 2 and done["refresh"]["mode"] == "incremental"
    (merged,) = as_json(lake, capsys, "index", "merge", "notes_ix")["indexes"]
    assert merged["splits"] == 1
    lake.table("notes").delete("id = 1")
    lake.table("notes").optimize()
    ask(lake, capsys, "index", "refresh")
    (swept,) = as_json(lake, capsys, "index", "vacuum", "notes_ix", "--retention-hours", "0")["indexes"]
    assert (swept["rows"], swept["dead_rows"], swept["idle_splits"]) == (3, 0, 0)
    assert as_json(lake, capsys, "index", "refresh", "--full", "notes_ix")["indexes"][0]["refresh"]["mode"] == "full"
    _, said = ask(lake, capsys, "index", "status", "nosuch", code=1)
    assert "nosuch" in said and "hint" in said


def test_a_damaged_split_is_named(lake: Lake, capsys: Capture) -> None:
    (file,) = (Path(lake.location) / lake.index("notes_ix").folder_path / "splits").glob("*.split")
    file.unlink()
    _, said = ask(lake, capsys, "index", "status", "notes_ix", code=3)
    assert file.stem in said and "replaced by the next refresh" in said
    ask(lake, capsys, "index", "refresh")
    assert ask(lake, capsys, "index", "status")[1] == ""


def test_a_lake_without_indexes(tmp_path: Path, capsys: Capture) -> None:
    lake = hw.connect(tmp_path)
    assert ask(lake, capsys, "index", "status") == ([], f"there is no search index in {lake.location}\n")
