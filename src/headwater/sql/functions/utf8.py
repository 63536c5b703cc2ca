"""Is it UTF-8? A text here always is, so these are about binaries, which Spark takes for texts as they are."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.sql.casts import cast
from headwater.sql.functions.function import Function
from headwater.sql.functions.typing import argument
from headwater.sql.nodes import Node, call
from headwater.sql.types import BOOLEAN, STRING, family
from headwater.sql.udfs import Failed, define

__all__ = ["FUNCTIONS"]

_BINARY = pa.binary()


def _read(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _demanded(data: bytes) -> str:
    found = _read(data)
    if found is None:
        raise Failed("bytes that are not UTF-8", "use try_validate_utf8() or make_valid_utf8()")
    return found


_BODIES = {
    "is_valid_utf8": (BOOLEAN, lambda x: _read(x) is not None),
    "make_valid_utf8": (STRING, lambda x: x.decode(errors="replace")),
    "validate_utf8": (STRING, _demanded),
    "try_validate_utf8": (STRING, _read),
}


def _function(name: str) -> Function:
    dtype, body = _BODIES[name]
    udf = define(name, "BLOB", dtype, body)

    def build(args: Sequence[Node]) -> Node:
        (given,) = args
        value = given if family(given.dtype) == "binary" else cast(argument("s", given, name), _BINARY)
        return call(name, (value,), dtype, fallible=name == "validate_utf8")

    kind = "".join(part.capitalize() for part in name.removesuffix("_utf8").split("_")) + "UTF8"
    return Function(name, "string", build, 1, 1, {name: f"{udf}({{0}})"}, spark=(kind,))


FUNCTIONS = tuple(map(_function, _BODIES))
