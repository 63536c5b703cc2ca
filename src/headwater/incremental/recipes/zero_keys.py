"""Keys of floats: -0.0 and 0.0 are one key to SQL, and two to whoever compares words.

Operators that bring equal keys together ask for keys whose words are equal iff the keys are. The columns themselves
stay as they were: a key is a column beside them, the same one for all who ask for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.sql.nodes import Call, Column, Literal
from headwater.sql.vectorised import Program

if TYPE_CHECKING:
    from headwater.incremental.dataflow.vertex import Vertex
    from headwater.incremental.recipes.row_stream import S

__all__ = ["normalised", "without_negative_zeros"]

_KEY = "\0without -0.0"


def normalised(stream: S, keys: Sequence[str]) -> tuple[S, list[str]]:
    """The stream with keys that are equal iff their words are, and the names of them; once is as good as twice."""
    floats = [k for k in dict.fromkeys(keys) if _is_float(stream, k) and not k.startswith(_KEY)]
    if not floats:
        return stream, list(keys)
    names = [f"{_KEY} {k}" if k in floats else k for k in keys]
    floats = [k for k in floats if f"{_KEY} {k}" not in stream.columns]
    if not floats:
        return stream, names

    def made() -> Vertex:
        columns: list[tuple[str, str | Program]] = [(c, c) for c in stream.columns]
        columns += [(f"{_KEY} {k}", _plus_zero(stream, k)) for k in floats]
        return stream.projected(columns, label="keys", detail=f"zeros of {', '.join(floats)}").vertex

    found = stream.circuit.once(("zeros", stream.vertex.id, *floats), made)
    return stream.at(found), names


def without_negative_zeros(stream: S) -> S:
    """The stream with 0.0 for every -0.0 in its columns."""
    if not any(_is_float(stream, c) for c in stream.columns):
        return stream
    columns: list[tuple[str, str | Program]] = [
        (c, _plus_zero(stream, c) if _is_float(stream, c) else c) for c in stream.columns
    ]
    return stream.projected(columns, label="zeros")


def _is_float(stream: S, column: str) -> bool:
    return bool(pa.types.is_floating(stream.schema.field(column).type))


def _plus_zero(stream: S, column: str) -> Program:
    dtype = stream.schema.field(column).type
    total = Call("+", (Column(None, (column,), dtype), Literal(0.0, dtype)), dtype, False)
    return Program(total, stream.schema, f"{column} + 0")
