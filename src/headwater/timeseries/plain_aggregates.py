"""Aggregates as users write them: which are plain enough for a kernel, which depend on the order of rows, and what they
read.

Any SQL aggregate can be computed over frames; most texts are one of a few functions of one column (``sum(size)``,
``count(*)``). Those are recognised here, so that a kernel can take the short way; everything else goes the long way,
with the same meaning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa

from headwater.base.errors import NotFoundError
from headwater.sql.lineage import lineage
from headwater.sql.query import parse_query
from headwater.timeseries.aggregate_calls import over

__all__ = ["PlainAggregate", "columns_of", "is_order_free", "plain_aggregate", "schema_for"]

_PLAIN = re.compile(r"\s*(\w+)\s*\(\s*(`(?:[^`]|``)+`|[A-Za-z_]\w*|\*)\s*\)\s*", re.IGNORECASE)
_FUNCTIONS = {"sum", "avg", "min", "max", "count", "product", "stddev_samp", "stddev_pop", "var_samp", "var_pop"}
_OTHER_NAMES = {"mean": "avg", "std": "stddev_samp", "stddev": "stddev_samp", "variance": "var_samp"}
_CALL = re.compile(r"([A-Za-z_]\w*)\s*\(")
_ORDER_FREE = {
    "abs", "avg", "bool_and", "bool_or", "case", "cast", "ceil", "coalesce", "count", "count_if", "every", "exp",
    "floor", "greatest", "if", "ifnull", "in", "least", "ln", "log", "max", "mean", "min", "nullif", "nvl", "power",
    "round", "some", "sqrt", "std", "stddev", "stddev_pop", "stddev_samp", "sum", "var_pop", "var_samp", "variance",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PlainAggregate:
    """One function of one column; of no column, the number of rows."""

    function: str
    column: str | None
    type: pa.DataType


def plain_aggregate(text: str, schema: pa.Schema) -> PlainAggregate | None:
    """The plain aggregate that a text says, if it is one whose values are single words.

    >>> schema = pa.schema([("p", pa.float64()), ("name", pa.string())])
    >>> plain_aggregate("sum(P)", schema)
    PlainAggregate(function='sum', column='p', type=DataType(double))
    >>> plain_aggregate("max(name)", schema), plain_aggregate("sum(p * 2)", schema)
    (None, None)
    """
    found = _PLAIN.fullmatch(text)
    if found is None:
        return None
    function, name = found[1].lower(), found[2]
    function = _OTHER_NAMES.get(function, function)
    if function not in _FUNCTIONS:
        return None
    if name == "*":
        return PlainAggregate("count", None, pa.int64()) if function == "count" else None
    column = _resolved(name[1:-1].replace("``", "`") if name[0] == "`" else name, schema)
    if column is None:
        return None
    kind = schema.field(column).type
    if function == "count":
        return PlainAggregate("count", column, pa.int64())
    t = pa.types
    numeric = t.is_signed_integer(kind) or kind in (pa.float32(), pa.float64())
    if function in ("min", "max"):
        fits = numeric or t.is_date32(kind) or (t.is_timestamp(kind) and kind.unit == "us") or t.is_boolean(kind)
        return PlainAggregate(function, column, kind) if fits else None
    if not numeric:
        return None
    exact = function == "sum" and t.is_integer(kind)
    return PlainAggregate(function, column, pa.int64() if exact else pa.float64())


def _resolved(name: str, schema: pa.Schema) -> str | None:
    alike = [known for known in schema.names if known.lower() == name.lower()]
    return str(alike[0]) if len(alike) == 1 else None


def is_order_free(text: str) -> bool:
    """Whether rows of the same time may stand in any order in a frame that has all or none of them.

    >>> is_order_free("sum(a * b) / sum(b)"), is_order_free("last(a)")
    (True, False)
    """
    return {call.lower() for call in _CALL.findall(text)} <= _ORDER_FREE


def schema_for(text: str, schema: pa.Schema) -> pa.Schema:
    """The columns whose names occur in a text: all that it can read, of whatever else there is.

    >>> schema_for("sum(A)", pa.schema([("a", pa.int32()), ("b", pa.duration("us"))])).names
    ['a']
    """
    lowered = text.lower()
    return pa.schema([field for field in schema if field.name.lower() in lowered or "`" in field.name])


def columns_of(text: str, schema: pa.Schema) -> tuple[str, ...]:
    """The columns that an aggregate reads.

    >>> columns_of("sum(a) FILTER (WHERE b > 0)", pa.schema([("a", pa.int32()), ("b", pa.int32()), ("c", pa.int32())]))
    ('a', 'b')
    """
    near = schema_for(text, schema)
    query = f"SELECT {over(text, '')} AS x FROM rows"
    try:
        plan = parse_query(query, lambda *_: near)
    except NotFoundError:
        plan = parse_query(query, lambda *_: schema)
    read = {source.name for source in lineage(plan).columns[0].sources}
    return tuple(name for name in near.names if name in read)
