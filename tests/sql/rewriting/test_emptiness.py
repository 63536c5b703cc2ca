"""Every aggregate says of a key without rows what it says of no rows."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

from headwater.sql.functions.catalogue import AGGREGATES
from headwater.sql.rewriting import decorrelated, prepared

from .oracle import connected, differences, read, rows

_TABLES = {
    "t": pa.table({"a": pa.array([1, 2, None], pa.int32())}),
    "u": pa.table({"k": pa.array([1, 1], pa.int32()), "x": pa.array([1.5, None]), "b": pa.array([True, None])}),
}
_ARGUMENTS = {
    **dict.fromkeys(("bool_and", "every", "bool_or", "any", "some", "count_if"), "b"),
    **dict.fromkeys(("bit_and", "bit_or", "bit_xor", "collect_set", "mode"), "k"),
    "bitmap_construct_agg": "k",
    **dict.fromkeys(("bitmap_and_agg", "bitmap_or_agg"), "x'0102'"),
    **dict.fromkeys(("listagg", "string_agg"), "cast(k AS string), '-'"),
    **dict.fromkeys(("max_by", "min_by", "covar_pop", "covar_samp", "corr"), "x, x"),
    **dict.fromkeys(("approx_percentile", "percentile_approx", "percentile"), "x, 0.5"),
}
_NAMES = sorted(name for name, f in AGGREGATES.items() if f.kind == "aggregate")


def _call(name: str) -> str:
    if name in ("percentile_cont", "percentile_disc"):
        return f"{name}(0.5) WITHIN GROUP (ORDER BY x)"
    return f"{name}({'x, x' if name.startswith('regr') else _ARGUMENTS.get(name, 'x')})"


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with connected(_TABLES) as found:
        yield found


@pytest.mark.parametrize("name", _NAMES)
def test_a_key_without_rows(name: str, con: duckdb.DuckDBPyConnection) -> None:
    call = _call(name)
    rules = {"decorrelated": decorrelated, "prepared": prepared}
    assert not differences(f"SELECT a, (SELECT {call} FROM u WHERE u.k = t.a) FROM t", _TABLES, rules, con)
    assert not differences(f"SELECT a, (SELECT {call} FROM u WHERE u.k >= t.a) FROM t", _TABLES, rules, con)
    nothing = rows(read(f"SELECT {call} FROM u WHERE k = 2", _TABLES), con)
    plan = read(f"SELECT (SELECT {call} FROM u WHERE u.k = t.a) FROM t WHERE a = 2", _TABLES)
    assert rows(prepared(plan), con) == nothing
