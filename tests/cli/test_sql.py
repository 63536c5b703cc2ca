"""`headwater sql`: statements from arguments, files and pipes; rows in every format; errors with their line."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from tests.waiting import PATIENCE_S

import headwater as hw
from headwater.base.errors import InputError
from headwater.cli import main
from headwater.cli._parameters import parse_value

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def lake(tmp_path: Path) -> str:
    place = tmp_path / "lake"
    rows = pa.table(
        {
            "id": pa.array([1, 2, 3], pa.int64()),
            "name": ["ann", None, 'b "o" b,\n'],
            "amount": pa.array([Decimal("12.50"), Decimal("0.01"), None], pa.decimal128(20, 10)),
            "at": pa.array([0, 1_500_000, None], pa.timestamp("us", "UTC")),
            "raw": [b"\x00\xff", None, b""],
            "tags": [["a", None], [], None],
        }
    )
    hw.connect(place).write("orders", rows)
    return str(place)


def command(*words: str, text: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "headwater.cli", *words],
        input=text,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def said(words: Sequence[str], capsys: Capture) -> tuple[int, str, str]:
    code = main(list(words))
    out, err = capsys.readouterr()
    return code, out, err


def test_a_table(lake: str, capsys: Capture) -> None:
    code, out, err = said(["sql", lake, "-c", "SELECT id, amount, name FROM orders ORDER BY id"], capsys)
    assert (code, err) == (0, "")
    assert (
        f"\n{out}"
        == r"""
    id          amount  name
bigint  decimal(20,10)  string
──────  ──────────────  ──────────
     1   12.5000000000  ann
     2    0.0100000000  null
     3            null  b "o" b,\n
(3 rows)
"""
    )


def test_more_rows_than_are_shown(lake: str, capsys: Capture) -> None:
    _, out, _ = said(["sql", lake, "-c", "SELECT id FROM orders ORDER BY id", "--max-rows", "2"], capsys)
    assert out.splitlines()[-2:] == ["     2", "… 2 of more rows"]


def test_json_is_one_document_and_exact(lake: str, capsys: Capture) -> None:
    code, out, _ = said(["sql", lake, "--json", "-c", "SELECT * FROM orders ORDER BY id; SELECT 1 AS one"], capsys)
    first, second = json.loads(out)["results"]
    assert code == 0
    assert [c["type"] for c in first["columns"]] == [
        "bigint",
        "string",
        "decimal(20,10)",
        "timestamp",
        "binary",
        "array<string>",
    ]
    assert first["rows"][0] == {
        "id": 1,
        "name": "ann",
        "amount": "12.5000000000",
        "at": "1970-01-01T00:00:00Z",
        "raw": "AP8=",
        "tags": ["a", None],
    }
    assert second == {"statement": "SELECT", "columns": [{"name": "one", "type": "int"}], "rows": [{"one": 1}]}


def test_jsonl_and_csv_and_files_hold_the_same_rows(lake: str, tmp_path: Path, capsys: Capture) -> None:
    query = "SELECT * FROM orders ORDER BY id"
    truth = hw.connect(lake).table("orders").to_arrow().sort_by("id")
    _, out, _ = said(["sql", lake, "-c", query, "--format", "jsonl"], capsys)
    assert [json.loads(line)["name"] for line in out.splitlines()] == truth["name"].to_pylist()

    _, out, _ = said(["sql", lake, "-c", query, "--format", "csv"], capsys)
    options = pyarrow.csv.ConvertOptions(
        column_types={"amount": pa.decimal128(20, 10), "name": pa.string(), "at": pa.timestamp("us", "UTC")},
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    parse = pyarrow.csv.ParseOptions(newlines_in_values=True)
    back = pyarrow.csv.read_csv(io.BytesIO(out.encode()), convert_options=options, parse_options=parse)
    for column in ("id", "name", "amount", "at"):
        assert back[column].to_pylist() == truth[column].to_pylist()
    assert back["raw"].to_pylist() == ["AP8=", None, ""]
    assert back["tags"].to_pylist() == ['["a", null]', "[]", None]

    for name, read in (("parquet", pq.read_table), ("arrow", lambda p: pa.ipc.open_file(p).read_all())):
        file = tmp_path / f"out.{name}"
        code, out, err = said(["sql", lake, "-c", query, "--format", name, "--output", str(file)], capsys)
        assert (code, out, err) == (0, "", "")
        assert read(str(file)).to_pylist() == truth.to_pylist()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lake", "out.arrow", "out.parquet"]


@pytest.mark.long
def test_binary_formats_on_a_pipe(lake: str) -> None:
    for name in ("arrow", "parquet"):
        done = subprocess.run(
            [sys.executable, "-m", "headwater.cli", "sql", lake, "-c", "SELECT id FROM orders", "--format", name],
            capture_output=True,
            check=True,
        )
        stream = io.BytesIO(done.stdout)
        table = pa.ipc.open_stream(stream).read_all() if name == "arrow" else pq.read_table(stream)
        assert sorted(table["id"].to_pylist()) == [1, 2, 3]


def test_a_failed_query_leaves_no_file(lake: str, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "out.csv"
    script = "SELECT id FROM orders; SELECT id / (id - 2) FROM orders"
    code, _, err = said(["sql", lake, "-c", script, "--format", "csv", "-o", str(file)], capsys)
    assert code == 1
    assert "line 1" in err
    assert [p.name for p in tmp_path.iterdir()] == ["lake"]


def test_a_file_holds_one_result(lake: str, tmp_path: Path, capsys: Capture) -> None:
    file = str(tmp_path / "x.parquet")
    code, _, err = said(["sql", lake, "-c", "SELECT 1; SELECT 2", "--format", "parquet", "-o", file], capsys)
    assert code == 1
    assert "a file holds one result" in err


def test_columns_of_the_same_name(lake: str, capsys: Capture) -> None:
    query = ["-c", "SELECT id, id FROM orders ORDER BY 1"]
    code, out, _ = said(["sql", lake, *query], capsys)
    assert code == 0
    assert out.splitlines()[0] == "    id      id"
    for name in ("json", "jsonl", "parquet"):
        code, out, err = said(["sql", lake, *query, "--format", name, "-o", f"{lake}/x"], capsys)
        assert code == 1
        assert "E1404" in err


def test_statements_change_the_lake_and_say_so(lake: str, capsys: Capture) -> None:
    code, out, _ = said(["sql", lake, "--json", "-c", "DELETE FROM orders WHERE id = 2"], capsys)
    assert code == 0
    assert json.loads(out)["results"][0]["statement"] == "DELETE"
    assert hw.connect(lake).table("orders").count() == 2


SCRIPT = "SELECT 1 AS one;\n-- a comment;\nSELECT ';' AS mark;\nSELECT * FROM oders;\nDELETE FROM orders;\n"


def test_a_script_stops_at_the_first_error_and_names_its_line(lake: str, tmp_path: Path, capsys: Capture) -> None:
    script = tmp_path / "script.sql"
    script.write_text(SCRIPT)
    code, out, err = said(["sql", lake, "-f", str(script)], capsys)
    assert code == 1
    assert "mark" in out
    assert f"statement 3 of 4, line 4 of {script}\n" in err
    assert "did you mean `orders`?" in err
    assert hw.connect(lake).table("orders").count() == 3, "the rest is not run"


def test_keep_going(lake: str, capsys: Capture) -> None:
    code, _, err = said(["sql", lake, "-c", SCRIPT, "--keep-going"], capsys)
    assert code == 1
    assert err.count("error[") == 1
    assert hw.connect(lake).table("orders").count() == 0


def test_a_misspelled_statement_changes_nothing(lake: str, capsys: Capture) -> None:
    code, out, err = said(["sql", lake, "-c", "DELETE FROM orders;\nSELEC 1"], capsys)
    assert (code, out) == (1, "")
    assert "statement 2 of 2, line 2" in err
    assert hw.connect(lake).table("orders").count() == 3


def test_an_error_under_json_is_in_the_document(lake: str, capsys: Capture) -> None:
    code, out, err = said(["sql", lake, "--json", "-c", "SELECT 1 AS one; SELECT * FROM oders"], capsys)
    document = json.loads(out)
    assert code == 1
    assert document["results"][0]["rows"] == [{"one": 1}]
    assert document["error"]["code"] == "E1101"
    assert err.startswith("error[E1101]")


@pytest.mark.long
def test_stdin_is_a_script(lake: str) -> None:
    done = command("sql", lake, "--format", "jsonl", text="SELECT 1 AS a;\nSELECT 'ü' AS b;")
    assert (done.returncode, done.stdout, done.stderr) == (0, '{"a": 1}\n{"b": "ü"}\n', "")


def test_the_current_folder_is_the_default(lake: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.chdir(lake)
    _, out, _ = said(["sql", "-c", "SELECT count(*) AS n FROM orders", "--format", "jsonl"], capsys)
    assert out == '{"n": 3}\n'


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-5", -5),
        ("1.50", Decimal("1.50")),
        ("1e3", 1000.0),
        ("TRUE", True),
        ("null", None),
        ("'5'", "5"),
        ("it's", "it's"),
        ("'it''s'", "it's"),
        ("x=y", "x=y"),
        ("", ""),
    ],
)
def test_values_of_parameters(text: str, value: object) -> None:
    parsed = parse_value(text)
    assert (parsed, type(parsed)) == (value, type(value))


def test_parameters(lake: str, capsys: Capture) -> None:
    words = ["--param", "least=2", "--param", "day=date'1970-01-01'", "--format", "jsonl"]
    script = "SELECT count(*) AS n FROM orders WHERE id >= :least; SELECT count(*) AS n FROM orders WHERE at >= :day"
    code, out, _ = said(["sql", lake, "-c", script, *words], capsys)
    assert (code, out) == (0, '{"n": 2}\n{"n": 2}\n')
    injected = "x' OR '1' = '1"
    words = ["-c", "SELECT count(*) AS n FROM orders WHERE name = :name", "--param", f"name={injected}"]
    assert said(["sql", lake, *words, "--format", "jsonl"], capsys)[1] == '{"n": 0}\n'
    code, _, err = said(["sql", lake, "-c", "SELECT 1", "--param", "least=2"], capsys)
    assert code == 1
    assert "least" in err
    with pytest.raises(InputError):
        parse_value("date'soon'")


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["nowhere", "-c", "SELECT 1"], "there is no such folder"),
        (["SELECT 1"], "SQL stands behind -c"),
        ([".", "-f", "nothing.sql"], "no file `nothing.sql`"),
        ([".", "-c", "SELECT 1", "--param", "x"], "name=value"),
        ([".", "-c", "SELECT 1", "--max-rows", "-1"], "--max-rows"),
        ([".", "-c", "SELECT 1", "--format", "csv", "-o", "no/where/x.csv"], "there is no such folder"),
    ],
)
def test_bad_arguments(
    words: list[str], what: str, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = said(["sql", *words], capsys)
    assert (code, out) == (1, "")
    assert what in err
    assert list(tmp_path.iterdir()) == [], "a typing error makes no lake"


@pytest.mark.parametrize(
    "words", [["-c", "x", "-f", "y"], ["--engine", "oracle"], ["--format", "xml"], ["--max-rows", "many"]]
)
def test_usage(words: list[str], capsys: Capture) -> None:
    assert said(["sql", *words], capsys)[0] == 2


def test_timing_is_on_stderr(lake: str, capsys: Capture) -> None:
    _, out, err = said(["sql", lake, "-c", "SELECT 1 AS a", "--format", "csv", "--timing"], capsys)
    assert out == '"a"\n1\n'
    assert err.startswith("time: ")


@pytest.fixture
def numbers(lake: str) -> str:
    """A lake in which joins make as many rows as one likes."""
    hw.connect(lake).write("n", pa.table({"i": range(1000)}))
    return lake


@pytest.mark.long
def test_large_results_stream_in_bounded_memory(numbers: str) -> None:
    """1 GB of text goes through a process that never holds much of it."""
    rows, wide = 1_000_000, 1000
    query = f"SELECT repeat('x', {wide}) AS t FROM n AS a CROSS JOIN n AS b"
    # Not ru_maxrss: a process that was just started has its parent's there.
    program = f"""
import re, sys
from headwater.cli import main
code = main(["sql", {numbers!r}, "-c", {query!r}, "--format", "csv"])
print(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1], file=sys.stderr)
sys.exit(code)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        size = 0
        while block := process.stdout.read(1 << 20):
            size += len(block)
        peak_kib = int(process.stderr.read())
    assert size == len('"t"\n') + rows * (wide + 3)
    assert peak_kib < 400_000


@pytest.mark.long
def test_ctrl_c_ends_with_130(numbers: str) -> None:
    query = "SELECT a.i FROM n AS a CROSS JOIN n AS b CROSS JOIN n AS c CROSS JOIN n AS d"
    words = [sys.executable, "-m", "headwater.cli", "sql", numbers, "--format", "csv", "-c", query]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(100)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert b"E1402" in err
    assert b"Traceback" not in err


@pytest.mark.long
def test_a_reader_that_leaves_early_is_no_failure_with_a_trace(numbers: str) -> None:
    query = "SELECT 7 AS id FROM n AS a CROSS JOIN n AS b CROSS JOIN n AS c"
    words = [sys.executable, "-m", "headwater.cli", "sql", numbers, "--format", "csv", "-c", query]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b'"id"\n'
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(PATIENCE_S) == 1


@pytest.mark.long
def test_secrets_of_the_environment_are_never_printed(tmp_path: Path) -> None:
    secrets = {
        "AWS_ACCESS_KEY_ID": "AKIAFINDMEIFYOUCAN00",
        "AWS_SECRET_ACCESS_KEY": "s3cr3tFindMeIfYouCan",
        "AWS_SESSION_TOKEN": "t0kenFindMeIfYouCan",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
    }
    place = "s3://bucket/lake"
    for words in (
        ["sql", place, "-c", "SELECT * FROM orders", "--debug"],
        ["tables", place, "--json"],
        ["history", place, "orders", "--debug"],
    ):
        done = command(*words, **secrets)
        assert done.returncode == 1
        said = done.stdout + done.stderr
        assert "error[E6003]" in said
        assert ("Traceback" in said) == ("--debug" in words)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
            assert secrets[name] not in said, words
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("SELECT id FROM orders TABLESAMPLE (10 PERCENT)", "run the query with --engine spark"),
        ("SELECT frobnicate(1)", "if it is one of Spark's, run it with --engine spark"),
        ("SELECT :id", "pass --param id=VALUE"),
        ("INSERT INTO orders (id) VALUES ('x')", "ALTER TABLE orders ALTER COLUMN id TYPE …"),
        ("SELECT * FROM delta.`/data/t`", "give the table a name: CREATE TABLE name USING DELTA LOCATION 'path'"),
    ],
)
def test_hints_name_options_and_statements(lake: str, sql: str, hint: str, capsys: Capture) -> None:
    assert main(["sql", lake, "-c", sql]) == 1
    shown = capsys.readouterr().err.strip().splitlines()[-1]
    assert shown.startswith("  hint: ") and shown.endswith(hint)
    assert main(["sql", lake, "-c", sql, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["hint"].endswith(hint)
    with pytest.raises(hw.HeadwaterError) as caught:
        hw.connect(lake).sql(sql)
    assert "--" not in str(caught.value.hint)
