"""What people see: values as Spark prints them, tables that fit, nothing that a terminal would obey."""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth

from headwater.query.rendering.html import draw_html
from headwater.query.rendering.terminal import draw, escaped
from headwater.query.rendering.values import JSON, TEXT, spell
from headwater.query.result import Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDERS = pa.table(
    {
        "id": pa.array([1, 20, 300], pa.int64()),
        "name": ["ann", None, "日本語"],
        "amount": pa.array([Decimal("12.50"), Decimal("-0.01"), None], pa.decimal128(10, 2)),
        "at": pa.array([0, 1_714_564_800_500_000, None], pa.timestamp("us", "UTC")),
        "tags": [["a", None], [], None],
    }
)


def test_a_table() -> None:
    assert (
        f"\n{draw(ORDERS, limit=20)}\n"
        == """
    id  name           amount  at                     tags
bigint  string  decimal(10,2)  timestamp              array<string>
──────  ──────  ─────────────  ─────────────────────  ─────────────
     1  ann             12.50  1970-01-01 00:00:00    [a, null]
    20  null            -0.01  2024-05-01 12:00:00.5  []
   300  日本語           null  null                   null
(3 rows)
"""
    )


def test_a_narrow_terminal_cuts_texts_and_then_leaves_columns_out() -> None:
    assert (
        f"\n{draw(ORDERS, limit=2, total=3, width=50)}\n"
        == """
    id  name         amount  at
bigint  string  decimal(10…  timestamp
──────  ──────  ───────────  ─────────────────────
     1  ann           12.50  1970-01-01 00:00:00
    20  null          -0.01  2024-05-01 12:00:00.5
… 2 of 3 rows, 1 more column
"""
    )


def test_colour_dims_types_and_nulls_and_nothing_else() -> None:
    drawn = draw(pa.table({"name": ["null", None]}), limit=5, colour=True)
    assert drawn.split("\n") == [
        "\x1b[1mname\x1b[0m",
        "\x1b[2mstring\x1b[0m",
        "\x1b[2m──────\x1b[0m",
        "null",
        "\x1b[2mnull  \x1b[0m",
        "(2 rows)",
    ]


def test_control_characters_are_written_out() -> None:
    nasty = pa.table(
        {"a\x1b[31mb": ["x\x1b]0;title\x07", "one\ntwo\ttab", "\u202egnp.exe", "\x9b31m", "\u2028", "zero\u200bwidth"]}
    )
    drawn = draw(nasty, limit=10)
    assert drawn.split("\n")[0] == "a\\x1b[31mb"
    assert drawn.split("\n")[3:9] == [
        "x\\x1b]0;title\\x07",
        "one\\ntwo\\ttab",
        "\\u{202e}gnp.exe",
        "\\x9b31m",
        "\\u{2028}",
        "zero\\u{200b}width",
    ]


@given(
    st.lists(st.lists(st.one_of(st.none(), st.text(max_size=30)), min_size=3, max_size=3), max_size=6),
    st.integers(16, 120),
)
def test_no_line_is_wider_than_the_terminal_and_none_is_obeyed(rows: list[list[str | None]], width: int) -> None:
    columns = list(zip(*rows, strict=True)) if rows else [(), (), ()]
    table = pa.table([pa.array(c, pa.string()) for c in columns], names=["a", "ü" * 20, "c"])
    drawn = draw(table, limit=5, width=width)
    from rich.cells import cell_len

    lines = drawn.split("\n")
    assert all(cell_len(line) <= width for line in lines)
    assert len(lines) == 4 + min(len(rows), 5)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]", drawn)


@pytest.mark.parametrize(
    "text", ["abc", "日本語", "👨‍👩‍👧 family", "e\u0301te\u0301", "❤️", "🇩🇪", "👍🏽", "한글", "ก็", "ｆｕｌｌ"]
)
def test_columns_stay_aligned_whatever_is_in_them(text: str) -> None:
    """Measured by another library than the one that draws."""
    lines = draw(pa.table({"a": [text, "x"], "b": ["|", "|"]}), limit=5).split("\n")
    places = {wcswidth(line[: line.index("|")]) for line in lines[3:5]}
    assert len(places) == 1, lines


def test_long_texts_are_cut_with_a_mark() -> None:
    drawn = draw(pa.table({"i": [1], "t": ["日" * 100]}), limit=5, width=40).split("\n")
    assert drawn[3] == "     1  " + "日" * 15 + "…"
    wide = pa.table({"d": pa.array([Decimal(10**29 + 7)], pa.decimal128(30, 0))})
    assert draw(wide, limit=1, width=12).split("\n")[3] == "10000000000…"


def test_no_columns_and_no_rows() -> None:
    assert draw(pa.table({}), limit=5) == "(no rows)"
    assert draw(pa.table({"a": pa.array([], pa.int8())}), limit=5).split("\n")[-1] == "(no rows)"
    assert repr(Result.of(pa.table({}), "CREATE TABLE")) == "(no rows)"


VALUES: list[tuple[pa.Array, list[Any], list[Any]]] = [
    (pa.array([True, None]), ["true", None], [True, None]),
    (pa.array([2**63 - 1]), ["9223372036854775807"], [2**63 - 1]),
    (
        pa.array([1.0, 1e7, 1.5e-4, math.nan, -math.inf, -0.0, 123456.789]),
        ["1.0", "1.0E7", "1.5E-4", "NaN", "-Infinity", "-0.0", "123456.789"],
        [1.0, 1e7, 1.5e-4, "NaN", "-Infinity", -0.0, 123456.789],
    ),
    (pa.array([0.1, 1e10], pa.float32()), ["0.1", "1.0E10"], [0.1, 1e10]),
    (pa.array([Decimal("0.0000000001")], pa.decimal128(20, 10)), ["0.0000000001"], ["0.0000000001"]),
    (pa.array([b"\x00\xff", b""]), ["X'00FF'", "X''"], ["AP8=", ""]),
    (pa.array([date(2024, 2, 29)]), ["2024-02-29"], ["2024-02-29"]),
    (pa.array([-719_529, 2_932_897], pa.date32()), ["-0001-12-31", "+10000-01-01"], ["-0001-12-31", "+10000-01-01"]),
    (
        pa.array([-1, 1_500_000], pa.timestamp("us", "UTC")),
        ["1969-12-31 23:59:59.999999", "1970-01-01 00:00:01.5"],
        ["1969-12-31T23:59:59.999999Z", "1970-01-01T00:00:01.5Z"],
    ),
    (pa.array([0], pa.timestamp("us", "Europe/Berlin")), ["1970-01-01 00:00:00"], ["1970-01-01T00:00:00Z"]),
    (pa.array([1], pa.timestamp("ns")), ["1970-01-01 00:00:00.000000001"], ["1970-01-01T00:00:00.000000001"]),
    (
        pa.array([-93_784_500_000], pa.duration("us")),
        ["INTERVAL '-1 02:03:04.5' DAY TO SECOND"],
        ["INTERVAL '-1 02:03:04.5' DAY TO SECOND"],
    ),
    (pa.array([[1, None], None, []]), ["[1, null]", None, "[]"], [[1, None], None, []]),
    (pa.array([{"a": 1, "b": None}, None]), ["{1, null}", None], [{"a": 1, "b": None}, None]),
    (
        pa.array([[("k", 1.0)], None], pa.map_(pa.string(), pa.float64())),
        ["{k -> 1.0}", None],
        [{"k": 1.0}, None],
    ),
    (pa.array([[(1, "x")]], pa.map_(pa.int64(), pa.string())), ["{1 -> x}"], [[[1, "x"]]]),
    (pa.array(["x", None, "x"]).dictionary_encode(), ["x", None, "x"], ["x", None, "x"]),
    (pa.nulls(2), [None, None], [None, None]),
]


@pytest.mark.parametrize(
    ("array", "text", "plain"), VALUES, ids=lambda v: str(v.type) if isinstance(v, pa.Array) else ""
)
def test_values(array: pa.Array, text: list[Any], plain: list[Any]) -> None:
    assert spell(array, TEXT) == text
    assert spell(array, JSON) == plain
    json.dumps(spell(array, JSON), allow_nan=False)
    # A slice of an array knows its place.
    padded = pa.concat_arrays([pa.nulls(2, array.type), array, pa.nulls(1, array.type)])
    assert spell(padded.slice(2, len(array)), TEXT) == text
    assert spell(pa.chunked_array([array, array]), JSON) == plain * 2


@given(st.lists(st.one_of(st.none(), st.datetimes(timezones=st.just(UTC)))))
def test_instants_equal_the_standard_library(values: list[datetime | None]) -> None:
    spelled = spell(pa.array(values, pa.timestamp("us", "UTC")), JSON)
    assert [None if s is None else datetime.fromisoformat(s) for s in spelled] == values


@given(st.integers(-(2**31), 2**31 - 1))
def test_dates_beyond_the_standard_library_repeat_every_400_years(days: int) -> None:
    (far,) = spell(pa.array([days], pa.date32()), TEXT)
    year, month, day = re.fullmatch(r"([+-]?\d+)-(\d\d)-(\d\d)", far).groups()  # type: ignore[union-attr]
    cycles = (days + 719_162) // 146_097
    near = date(1, 1, 1) + timedelta(days=days + 719_162 - cycles * 146_097)
    assert (int(year) - 400 * cycles, int(month), int(day)) == (near.year, near.month, near.day)


def test_spark_prints_the_same(spark: SparkSession) -> None:
    texts = """
        SELECT * FROM VALUES
          (1, 1.5D, float(0.1), CAST(12.50 AS DECIMAL(10,2)), DATE'2024-02-29', TIMESTAMP'2024-05-01 12:00:00.5',
            array(1, NULL), map('a', 1), named_struct('x', 1, 'y', 'z'), INTERVAL '1 02:03:04' DAY TO SECOND, true),
          (NULL, 1e-7D, float(1e10), CAST(0.00 AS DECIMAL(10,2)), DATE'0001-01-01', TIMESTAMP'1969-12-31 23:59:59.999999',
            array(), map('b', NULL), named_struct('x', NULL, 'y', NULL), INTERVAL '-10 00:00:00.5' DAY TO SECOND, false)
        AS t(a, b, c, d, e, f, g, h, i, j, k)"""
    rows = spark.sql(texts)
    said = rows.selectExpr(*(f"CAST({name} AS STRING) AS {name}" for name in rows.columns)).collect()
    table = rows.toArrow()
    ours = zip(*(spell(column, TEXT) for column in table.columns), strict=True)
    assert [tuple(row) for row in said] == list(ours)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += f"{data}|"


def test_html_is_escaped_and_small() -> None:
    table = pa.table({"<b>x</b>": ["<script>alert(1)</script>", None, "a" * 5000], "n": [1, 2, 3]})
    html = draw_html(table, limit=3)
    tags = _Tags()
    tags.feed(html)
    assert tags.seen == {"div", "table", "thead", "tbody", "tr", "th", "td", "br", "span", "small"}
    assert "<script>alert(1)</script>|" in tags.text
    assert "null|" in tags.text
    assert len(html) < 2500
    assert "color:" not in html, "colours are the page's"
    wide = pa.table({f"c{i}": [1] for i in range(80)})
    assert "30 more columns" in draw_html(wide, limit=3)
    assert "… 1 of 3 rows" in draw_html(pa.table({"a": [1, 2, 3]}).slice(0, 2), limit=1, total=3)


def test_escaped_is_one_line() -> None:
    assert escaped("plain ü 日本") == "plain ü 日本"
    assert escaped("\r\n\x00") == "\\r\\n\\x00"
