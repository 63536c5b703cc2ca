"""Row groups: which parts of a Parquet file cannot hold a match, by the file's own statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from headwater.sql.conjuncts import Conjunct

__all__ = ["may_match"]


def may_match(meta: Any, conjuncts: Sequence[Conjunct], names: Mapping[str, str]) -> bool:
    """Whether a row group (of a Parquet footer) may hold rows that meet all ``conjuncts``.

    ``names`` gives a column's name inside the file. What the statistics do not tell is taken as a match.
    """
    if not conjuncts:
        return True
    by_name = {c.column: c for c in conjuncts if c.column in names}
    if not by_name:
        return True
    columns = {meta.column(i).path_in_schema: meta.column(i) for i in range(meta.num_columns)}
    for conjunct in conjuncts:
        column = columns.get(names.get(conjunct.column, ""))
        statistics = column.statistics if column is not None else None
        if statistics is not None and not _fits(conjunct, statistics, meta.num_rows):
            return False
    return True


def _fits(conjunct: Conjunct, statistics: Any, rows: int) -> bool:
    nulls = statistics.null_count if statistics.has_null_count else None
    if conjunct.op == "is null":
        return nulls != 0
    if conjunct.op == "is not null":
        return nulls != rows
    if nulls == rows:
        return False  # every comparison with null is unknown
    if not statistics.has_min_max or conjunct.op == "!=":
        return True
    low, high = statistics.min, statistics.max
    if isinstance(low, float) and (low != low or high != high):
        return True
    if any(isinstance(v, Decimal) for v in conjunct.values):
        return True  # a footer may give a decimal's unscaled digits
    try:
        if conjunct.op in ("=", "in"):
            return any(v is not None and (v != v or low <= v <= high) for v in conjunct.values)
        (value,) = conjunct.values
        if value is None or value != value or (isinstance(low, float) and conjunct.op in (">", ">=")):
            return True  # NaN sorts above all numbers, and statistics leave it out
        return bool({"<": low < value, "<=": low <= value, ">": high > value, ">=": high >= value}[conjunct.op])
    except TypeError:
        return True  # statistics of another type than the value: no telling
