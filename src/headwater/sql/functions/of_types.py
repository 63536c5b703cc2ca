"""Functions about types: each name of a type is a cast (``int('5')``), and typeof says what type a value has."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.sql.casts import cast
from headwater.sql.functions.function import Builder, Function
from headwater.sql.nodes import Literal, Node
from headwater.sql.types import BOOLEAN, DATE, DOUBLE, INT, LONG, STRING, TIMESTAMP, name_of

__all__ = ["CAST_FUNCTIONS", "FUNCTIONS"]

CAST_FUNCTIONS: dict[str, pa.DataType] = {
    "bigint": LONG,
    "binary": pa.binary(),
    "boolean": BOOLEAN,
    "date": DATE,
    "decimal": pa.decimal128(10, 0),
    "double": DOUBLE,
    "float": pa.float32(),
    "int": INT,
    "smallint": pa.int16(),
    "string": STRING,
    "timestamp": TIMESTAMP,
    "tinyint": pa.int8(),
}


def _cast(dtype: pa.DataType) -> Builder:
    return lambda args: cast(args[0], dtype)


def _typeof(args: Sequence[Node]) -> Node:
    return Literal(name_of(args[0].dtype).replace("`", ""), STRING)


FUNCTIONS = [
    # date() and timestamp() are with their kind, in `datetime_format`.
    *(Function(n, "type", _cast(t), 1, 1) for n, t in CAST_FUNCTIONS.items() if n not in ("date", "timestamp")),
    Function("typeof", "type", _typeof, 1, 1),
]
