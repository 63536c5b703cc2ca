"""Columns of PySpark in the place of SQL text: what they mean to Spark they mean to a stream."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as classic
from pyspark.sql.connect import functions as connect

import headwater as hw
from headwater.base.errors import InputError, UnsupportedError
from headwater.spark.columns import column_text
from headwater.timeseries.running.here import run_here
from headwater.timeseries.stream import Stream

AT = dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC)
ROWS = pa.table(
    {
        "k": ["a", "b", "a", None, "b"],
        "t": pa.array([AT + dt.timedelta(minutes=m) for m in (0, 1, 2, 3, 5)], pa.timestamp("us", "UTC")),
        "day": pa.array([dt.date(2024, 5, d) for d in (1, 2, 3, 4, 5)]),
        "n": pa.array([1, None, 3, -4, 5], pa.int64()),
        "i": pa.array([7, 8, None, 2_147_483_647, 0], pa.int32()),
        "x": [0.5, float("nan"), None, -0.0, 2.5],
        "m": pa.array([Decimal("1.25"), None, Decimal("2.50"), Decimal("-3.75"), Decimal("0.00")], pa.decimal128(9, 2)),
        "s": ["it's", "a%b", "a\\b", None, ""],
        "ok": [True, False, None, True, False],
        "xs": pa.array([[1, 2], [], None, [3], [None]], pa.list_(pa.int64())),
        "st": pa.array([{"p": 1, "q": "u"}, None, {"p": None, "q": "v"}, {"p": 4, "q": "w"}, {"p": 5, "q": None}]),
        "dots.in it": [1, 2, 3, 4, 5],
    }
)

Make = Callable[[Any], Any]
OF_ROWS: dict[str, Make] = {
    "arithmetic": lambda f: (f.col("n") * 2 - 1) / f.lit(4) + f.col("x"),
    "which operator binds more": lambda f: (f.col("n") + 1) * (f.col("n") - f.lit(2)) % 7,
    "a number first": lambda f: 10 - f.col("n"),
    "negative": lambda f: -f.col("n"),
    "power": lambda f: f.col("x") ** 2,
    "a long": lambda f: f.col("i") + f.lit(2**40),
    "an int": lambda f: f.lit(7),
    "a double": lambda f: f.col("m") * 1.5,
    "a decimal": lambda f: f.col("m") * f.lit(Decimal("1.050")),
    "not a number": lambda f: f.col("x") == f.lit(float("nan")),
    "infinite": lambda f: f.col("x") < float("inf"),
    "a text with signs": lambda f: f.col("s") == "it's",
    "a backslash": lambda f: f.col("s") == "a\\b",
    "bytes": lambda f: f.lit(b"\x00a"),
    "true": lambda f: f.lit(True) & f.col("ok"),
    "nothing": lambda f: f.lit(None).cast("int"),
    "a moment": lambda f: f.col("t") > f.lit(AT + dt.timedelta(minutes=1)),
    "a moment itself": lambda f: f.lit(AT + dt.timedelta(microseconds=7)),
    "a date": lambda f: f.col("day") >= f.lit(dt.date(2024, 5, 3)),
    "a length of time": lambda f: f.col("t") + f.lit(dt.timedelta(minutes=-90)),
    "a list": lambda f: f.array_contains(f.lit([1, 3]), f.col("n")),
    "and, or, not": lambda f: (f.col("ok") & (f.col("n") > 1)) | ~(f.col("x") > 0),
    "other than": lambda f: f.col("n") != 3,
    "the same or both null": lambda f: f.col("n").eqNullSafe(None),
    "is null": lambda f: f.col("n").isNull(),
    "is not null": lambda f: f.col("n").isNotNull(),
    "is nan": lambda f: f.isnan("x"),
    "is in": lambda f: f.col("n").isin(1, 3, None),
    "is in nothing": lambda f: f.col("n").isin([]),
    "is not in": lambda f: ~f.col("k").isin("a"),
    "between": lambda f: f.col("n").between(1, f.col("i")),
    "like": lambda f: f.col("s").like("a%"),
    "like with an escape": lambda f: f.like("s", f.lit("a!%_"), f.lit("!")),
    "ilike": lambda f: f.col("s").ilike("A%"),
    "rlike": lambda f: f.col("s").rlike(r"^a.b$"),
    "starts and ends": lambda f: f.col("s").startswith("a") & f.col("s").endswith("b"),
    "contains": lambda f: f.col("s").contains("%"),
    "substr": lambda f: f.col("s").substr(2, 2),
    "when": lambda f: f.when(f.col("n") > 1, "much").when(f.col("n").isNull(), f.lit(None)).otherwise("little"),
    "when without otherwise": lambda f: f.when(f.col("ok"), f.col("n")),
    "cast": lambda f: f.col("n").cast("string"),
    "cast to a type": lambda f: f.col("n").cast("decimal(12,3)"),
    "try_cast": lambda f: f.col("s").try_cast("int"),
    "functions": lambda f: f.coalesce(f.round(f.col("x") * 3, 1), f.lit(0.0)),
    "functions of texts": lambda f: f.concat_ws("-", f.upper("k"), f.col("s")),
    "functions of times": lambda f: f.date_trunc("hour", f.col("t") - f.expr("INTERVAL '2' HOUR")),
    "parts of a time": lambda f: f.hour("t") * 60 + f.minute("t"),
    "days": lambda f: f.date_add("day", 3),
    "a function by its name": lambda f: f.call_function("greatest", f.col("n"), f.lit(2)),
    "SQL inside": lambda f: f.expr("n + 1") * 2,
    "bits": lambda f: f.col("n").bitwiseAND(3).bitwiseOR(8).bitwiseXOR(1),
    "a lambda": lambda f: f.transform("xs", lambda v: v + f.col("n")),
    "a lambda of two": lambda f: f.aggregate("xs", f.lit(0).cast("bigint"), lambda a, v: a + v),
    "an element": lambda f: f.when(f.size("xs") > 0, f.col("xs")[0]),
    "a field": lambda f: f.col("st.p"),
    "a field by its name": lambda f: f.col("st").getField("q"),
    "a struct": lambda f: f.struct("n", f.col("k").alias("name")),
    "a name with dots": lambda f: f.col("`dots.in it`") + 1,
    "an alias": lambda f: (f.col("n") + 1).alias("anything"),
}
OF_GROUPS: dict[str, Make] = {
    "sum": lambda f: f.sum("n"),
    "count": lambda f: f.count("*"),
    "count of values": lambda f: f.count("n"),
    "count distinct": lambda f: f.countDistinct("n", "i"),
    "sum distinct": lambda f: f.sum_distinct("n"),
    "over aggregates": lambda f: f.sum(f.col("m") * f.col("n")) / f.sum("n"),
    "of a condition": lambda f: f.sum(f.when(f.col("n") > 1, f.col("m"))),
    "greatest by": lambda f: f.max_by("s", "t"),
    "deviation": lambda f: f.round(f.stddev("n"), 9),
    "min and max": lambda f: f.max("t") > f.min("t") + f.lit(dt.timedelta(minutes=1)),
}
KINDS = {"classic": classic, "connect": connect}


@pytest.fixture
def rows(spark: Any, tmp_path: Path) -> Stream:
    return hw.connect(tmp_path, spark=spark).stream(ROWS, time="t")


@pytest.fixture(scope="module")
def frame(spark: Any) -> Any:
    return spark.createDataFrame(ROWS)


def _rows(table: pa.Table) -> list[str]:
    return sorted(str(row) for row in table.to_pylist())


@pytest.mark.parametrize("title", OF_ROWS)
@pytest.mark.parametrize("kind", KINDS)
def test_of_rows(rows: Stream, frame: Any, kind: str, title: str) -> None:
    found = rows.select("t", got=OF_ROWS[title](KINDS[kind]))
    wanted = frame.select("t", OF_ROWS[title](classic).alias("got")).toArrow()
    if (kind, title) != ("connect", "a decimal"):  # which its server reads as one of ten digits at least
        assert found.schema.field("got").type == wanted.schema.field("got").type
    assert _rows(run_here(found.plan)) == _rows(wanted)


@pytest.mark.parametrize("title", OF_GROUPS)
@pytest.mark.parametrize("kind", KINDS)
def test_of_groups(rows: Stream, frame: Any, kind: str, title: str) -> None:
    found = rows.group("k").agg(got=OF_GROUPS[title](KINDS[kind]))
    wanted = frame.groupBy("k").agg(OF_GROUPS[title](classic).alias("got")).toArrow()
    assert _rows(run_here(found.plan)) == _rows(wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_wherever_an_expression_is(rows: Stream, kind: str) -> None:
    f = KINDS[kind]
    series = rows.ordered("t")
    pairs: list[tuple[Stream, Stream]] = [
        (rows.filter(f.col("n") > 1), rows.filter("n > 1")),
        (rows.with_columns(w=f.col("n") + 1), rows.with_columns(w="n + 1")),
        (rows.with_columns({"n": f.col("n") * 2}), rows.with_columns(n="n * 2")),
        (rows.with_columns((f.col("n") + 1).alias("w")), rows.with_columns(w="n + 1")),
        (rows.select("k", (f.col("n") + 1).alias("w"), f.col("i")), rows.select("k", w="n + 1", i="i")),
        (rows.select(["k", f.col("n")], w=f.lit(1)), rows.select("k", "n", w="1")),
        (rows.agg(f.sum("n").alias("total")), rows.agg(total="sum(n)")),
        (rows.group("k").agg({"c": f.count("*")}, d=f.max("i")), rows.group("k").agg(c="count(*)", d="max(i)")),
        (series.cumulative(c=f.sum("n")), series.cumulative(c="sum(n)")),
        (series.cumulative(f.sum("n").alias("c")), series.cumulative(c="sum(n)")),
        (series.rolling("2 minutes", c=f.avg("n")), series.rolling("2 minutes", c="avg(n)")),
        (series.rolling("2 minutes", f.avg("n").alias("c")), series.rolling("2 minutes", c="avg(n)")),
        (series.rolling(rows=2, c=f.max("s")), series.rolling(rows=2, c="max(s)")),
        (
            series.resample("2 minutes", {"c": f.last("n", ignorenulls=True)}),
            series.resample("2 minutes", {"c": "last(n, true)"}),
        ),
        *(
            (series.window(w).agg(f.first("k").alias("c"), d=f.sum("n") / f.count("n")), series.window(w).agg(c="first(k)", d="sum(n) / count(n)"))
            for w in (hw.Tumbling("2 minutes"), hw.Session("90s"), hw.Sliding("3 minutes"), hw.Rows(2))
        ),
    ]  # fmt: skip
    for found, wanted in pairs:
        assert found.schema == wanted.schema
        assert _rows(run_here(found.plan)) == _rows(run_here(wanted.plan))


def test_on_spark(rows: Stream) -> None:
    f = classic
    found = (
        rows.filter(f.col("s") != "it's")
        .with_columns(late=f.col("t") > f.lit(AT))
        .group("late")
        .agg(f.sum("n").alias("n"))
    )
    assert found.collect().sort_by("late").to_pylist() == [{"late": True, "n": 8}]


def test_the_zone_of_the_session_is_not_read_into_a_moment(spark: Any, rows: Stream) -> None:
    usual = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        for f in KINDS.values():
            assert run_here(rows.filter(f.col("t") == f.lit(AT)).plan)["n"].to_pylist() == [1]
    finally:
        spark.conf.set("spark.sql.session.timeZone", usual)


@pytest.mark.usefixtures("spark")
def test_texts() -> None:
    for f in KINDS.values():
        assert column_text((f.col("price") * 2 > f.lit(10)) & f.col("s").isNotNull()) in (
            "(((`price` * 2) > 10) AND isNotNull(`s`))",
            "(((`price` * 2) > 10) AND isnotnull(`s`))",
        )
        assert column_text(f.col("a").alias("b")) == "`a`"


@pytest.mark.parametrize("kind", KINDS)
def test_refused(rows: Stream, kind: str) -> None:
    f = KINDS[kind]
    asked: list[tuple[Callable[[], Any], str]] = [
        (lambda: rows.filter(f.udf(lambda v: v > 1, "boolean")("n")), "with_columns(name=lambda batch: …)"),
        (lambda: rows.with_columns(w=f.col("st").withField("z", f.lit(1))), "SQL text"),
        (lambda: rows.agg(w=f.col("n").desc()), "SQL text"),
    ]
    for call, hint in asked:
        with pytest.raises(UnsupportedError) as refused:
            call()
        assert refused.value.code == "E3003"
        assert refused.value.hint is not None and hint in refused.value.hint


def test_windows_and_columns_of_frames_are_refused(rows: Stream, frame: Any) -> None:
    from pyspark.sql import Window

    with pytest.raises(UnsupportedError, match=r"over\(\)") as windowed:
        rows.with_columns(w=classic.sum("n").over(Window.partitionBy("k")))
    assert windowed.value.hint is not None and "rolling" in windowed.value.hint
    with pytest.raises(UnsupportedError, match="column `n` of a DataFrame") as framed:
        rows.filter(frame.n > 1)
    assert framed.value.hint == 'name it: F.col("n")'


@pytest.mark.usefixtures("spark")
def test_names(rows: Stream) -> None:
    f = classic
    unnamed: list[Callable[[], Any]] = [
        lambda: rows.select(f.col("n") + 1),
        lambda: rows.agg(f.sum("n")),
        lambda: rows.with_columns(f.col("n") * 2),
    ]
    for call in unnamed:
        with pytest.raises(InputError) as refused:
            call()
        assert refused.value.hint is not None and '.alias("name")' in refused.value.hint
    wrong: Any = f.col("k")
    with pytest.raises(InputError, match="columns"):
        rows.group(wrong)


def test_polars_is_shown_the_text(rows: Stream) -> None:
    import polars as pl

    wrong: Any = pl.col("n") > 1
    calls: list[Callable[[], Any]] = [
        lambda: rows.filter(wrong),
        lambda: rows.with_columns(w=wrong),
        lambda: rows.agg(w=wrong),
        lambda: rows.ordered("t").rolling(rows=2, w=wrong),
        lambda: rows.window(hw.Tumbling("1 minute")).agg(w=wrong),
    ]
    for call in calls:
        with pytest.raises(InputError) as refused:
            call()
        assert refused.value.hint is not None and 'Spark SQL as text, like "price > 10' in refused.value.hint
