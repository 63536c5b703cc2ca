"""Every expression of the tables that Spark is asked for, over the same rows."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.sql import nested_data
from tests.sql import test_datetime_functions as moments
from tests.sql import test_math_functions as numbers
from tests.sql import test_string_functions as texts
from tests.sql.conftest import fixture_lines

from headwater.sql.expressions import parse
from headwater.sql.vectorised import compile_expression

from .agreement import differences

_PATTERN_TEXTS = [t for line in moments._PATTERN_TEXTS.split("\n") for t in line.split("|")]
_PLAIN_TEXTS = [t for line in moments._PLAIN_TEXTS.split("\n") for t in line.split("|")]
_ODD = ["\n", "a\nb", "a\r\n", "a\u2028", "x\x0by", "ab\n", "\r\n", None]


@pytest.mark.long
@pytest.mark.parametrize("name", ["agrees.sql", "functions.sql"])
def test_every_construct(name: str, extremes: pa.Table) -> None:
    found = differences(fixture_lines(name), extremes)
    assert not found, "\n".join(found)


@pytest.mark.long
def test_numbers() -> None:
    found = differences([*fixture_lines("numbers.sql"), *numbers._MATH, *numbers._EXACT], numbers._table(1))
    assert not found, "\n".join(found)


@pytest.mark.long
def test_texts() -> None:
    found = differences(fixture_lines("strings.sql"), texts._table(1))
    assert not found, "\n".join(found)


@pytest.mark.long
def test_regular_expressions() -> None:
    found = differences(fixture_lines("regexps.sql"), pa.table({"s": pa.array([*texts._MATCHED, *_ODD])}))
    assert not found, "\n".join(found)


@pytest.mark.long
def test_dates_and_timestamps() -> None:
    found = differences(fixture_lines("datetime.sql"), moments._table(1))
    assert not found, "\n".join(found)


@pytest.mark.long
def test_texts_that_are_dates() -> None:
    casts = [f"{word}(s AS {t})" for word in ("CAST", "TRY_CAST") for t in ("date", "timestamp", "timestamp_ntz")]
    found = differences(casts, pa.table({"s": pa.array([*_PLAIN_TEXTS, "2024-02-29\t", None])}))
    # Some patterns suffice: they are all DuckDB's.
    found += differences(fixture_lines("patterns.sql")[::9], pa.table({"s": pa.array([*_PATTERN_TEXTS, None])}))
    assert not found, "\n".join(found)


@pytest.mark.long
def test_nested_values() -> None:
    found = differences(fixture_lines("nested.sql"), nested_data.TABLE)
    assert not found, "\n".join(found)


def test_most_of_them_have_kernels(extremes: pa.Table) -> None:
    lines = [*fixture_lines("agrees.sql"), *fixture_lines("functions.sql")]
    programs = [compile_expression(parse(t, schema=extremes.schema), extremes.schema) for t in lines]
    assert sum(p.native for p in programs) >= 0.85 * len(programs)
