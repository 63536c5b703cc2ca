"""Functions that few queries call give Spark's values, types and names."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from headwater.base.errors import HeadwaterError

from .conftest import fixture_lines
from .oracle import plan_of
from .test_string_functions import _table as texts_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Differences = Callable[[pa.Table, Sequence[str]], list[str]]

_URLS = """http://spark.apache.org/path?query=1|https://u:p@a-b.example.com:8080/x/y.html?a=1&b=2#ref|http://a b/|inva lid://x|
mailto:ada@example.com|/only/path?a=|//host/p|http://under_score.example/x|ftp://127.0.0.1/f|http://[::1]:80/x?a=%41&a=2|http://300.1.1.1/|
http://example.com?a=b#c#d|http://exämple.com/ü?a=ß|http://host:port/x|http://%zz/|?a=1|#x|a:b|http://|http:///x?a=1&ba=2|HTTP://Host/%20?A=1|
http://example.com./x|http://1a.2b/|http://x.1/|jdbc:postgresql://h/db?a=3|http://user@/x|http://h:/x|:x|http://a/b;c=d?x=y&a=z|""".replace(
    "\n", ""
)


def _table(seed: int) -> pa.Table:
    chance = random.Random(seed)
    table = texts_table(seed)
    rows = range(table.num_rows)
    urls = _URLS.split("|")
    broken = [b"a", b"\x80", b"a\xc2b", b"\xe2\x82", b"\xf0\x9f\x98\x80", b"\xed\xa0\x80", b"\xff\xfe", b"", None]

    def vector(size: int) -> list[float | None] | None:
        if size < 0:
            return None
        values: list[float | None] = [chance.choice([chance.uniform(-9, 9), 0.0, 1e20, 1e-30]) for _ in range(size)]
        return [None, *values[1:]] if size and chance.random() < 0.1 else values

    sizes = [chance.choice([-1, 0, 1, 3, 8, 19]) for _ in rows]
    floats = pa.list_(pa.field("element", pa.float32()))
    return (
        table.append_column("url", pa.array([urls[n % len(urls)] for n in rows]))
        .append_column("base", pa.array(["".join(chance.choices("abAB+/= \n", k=chance.randint(0, 9))) for _ in rows]))
        .append_column("broken", pa.array([chance.choice(broken) for _ in rows], pa.binary()))
        .append_column("v", pa.array([vector(n) for n in sizes], floats))
        .append_column("w", pa.array([vector(n) for n in sizes], floats))
    )


@pytest.mark.spark
@settings(max_examples=max(1, settings().max_examples // 15), phases=[Phase.generate])
@given(seed=st.integers(0, 2**32))
def test_values_are_sparks(differences: Differences, seed: int) -> None:
    found = differences(_table(seed), fixture_lines("varied.sql"))
    assert not found, "\n".join(found)


def test_names_are_sparks(interpreted: SparkSession) -> None:
    table = _table(1)
    frame = interpreted.createDataFrame(table)
    frame.createOrReplaceTempView("varied")
    wrong = []
    for line in fixture_lines("varied.sql"):
        names = [frame.selectExpr(line).columns, plan_of(f"SELECT {line} FROM varied", {"varied": table}).schema.names]
        if names[0] != names[1]:
            wrong.append(f"{line}\n  spark: {names[0]}\n  here:  {names[1]}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("aes_encrypt(s, '0000111122223333')", "another answer at each run"),
        ("aes_encrypt(s, '0000111122223333', 'OFB')", "in OFB"),
        ("assert_true(i > 0, s)", "with a message"),
        ("vector_norm(v, 3.0F)", "another degree"),
        ("vector_norm(array(1.0D))", "array<double>"),
        ("parse_url(url, 'QUERY', 'a.b')", "'a.b'"),
        ("parse_url(url, 'QUERY', s)", "not a constant"),
        ("time_bucket(INTERVAL '-1' DAY, ts)", "not positive"),
        ("make_timestamp(2024, 1)", "2 argument(s)"),
        ("coalesce(TIME'1:00', s)", "time"),
        ("TIME'25:00'", "no time"),
        ("hash(map(s, i))", "map<"),
    ],
)
def test_what_is_refused(text: str, what: str) -> None:
    with pytest.raises(HeadwaterError) as caught:
        plan_of(f"SELECT {text} FROM varied", {"varied": _table(1)})
    assert what in str(caught.value), str(caught.value)
