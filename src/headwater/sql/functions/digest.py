"""Fingerprints of values: md5, sha, crc32, and Spark's own hashes of rows."""

from __future__ import annotations

import hashlib
import math
import struct
import zlib
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from headwater.base.schema import duckdb_type
from headwater.sql.casts import cast
from headwater.sql.functions.function import MANY, Builder, Form, Function
from headwater.sql.functions.typing import argument
from headwater.sql.hashing import murmur_bytes, murmur_int, murmur_long, xx_bytes
from headwater.sql.nodes import Call, Literal, Node, Refused, call
from headwater.sql.types import INT, LONG, STRING, family, name_of
from headwater.sql.udfs import define

__all__ = ["FUNCTIONS"]

_SHA = {224: hashlib.sha224, 384: hashlib.sha384, 512: hashlib.sha512}
_CRC = define("crc32", "BLOB", LONG, zlib.crc32)
_SHA_UDFS = {
    bits: define(f"sha{bits}", "BLOB", STRING, lambda x, of=of: of(x).hexdigest()) for bits, of in _SHA.items()
}


def _hashed(name: str, op: str, form: Form, dtype: pa.DataType = STRING) -> Function:
    def build(args: Sequence[Node]) -> Node:
        return call(op, (argument("x", args[0], name),), dtype)

    return Function(name, "hash", build, 1, 1, {op: form})


def _sha2(args: Sequence[Node]) -> Node:
    bits = args[1].value if isinstance(args[1], Literal) else None
    if bits not in (0, 224, 256, 384, 512):
        raise Refused("sha2() of another length than 224, 256, 384 or 512", "use sha2(x, 256)")
    return call(f"sha{bits or 256}", (argument("x", args[0], "sha2"),), STRING)


def _bits(value: float, *, single: bool) -> int:
    """The bits of a float, where every NaN is one NaN and there is one zero."""
    value = 0.0 if value == 0 else math.nan if math.isnan(value) else value
    (found,) = struct.unpack(">i" if single else ">q", struct.pack(">f" if single else ">d", value))
    return int(found)


_HASHED = frozenset({"string", "binary", "integer", "float"})


def _each(body: Callable[[Any, int], int]) -> Callable[[list[Any], int], int]:
    """The hash of an array: each element's with that of those before it as its seed, nulls left out."""

    def hashed(values: list[Any], seed: int) -> int:
        for value in values:
            seed = seed if value is None else body(value, seed)
        return seed

    return hashed


def _murmur(dtype: pa.DataType) -> Callable[[Any, int], int]:
    kind = family(dtype)
    if pa.types.is_list(dtype):
        return _each(_murmur(dtype.value_type))
    if kind == "float":
        single = dtype == pa.float32()
        return lambda x, seed: (murmur_int if single else murmur_long)(_bits(x, single=single), seed)
    if kind == "string":
        return lambda x, seed: murmur_bytes(x.encode(), seed)
    if kind == "binary":
        return murmur_bytes
    if kind == "decimal":
        return lambda x, seed: murmur_long(_unscaled(x, dtype.scale), seed)
    return murmur_long if dtype == LONG else murmur_int


def _xx(dtype: pa.DataType) -> Callable[[Any, int], int]:
    if pa.types.is_list(dtype):
        return _each(_xx(dtype.value_type))
    kind, size = family(dtype), 8 if dtype in (LONG, pa.float64()) or family(dtype) == "decimal" else 4

    def whole(value: int, seed: int) -> int:
        return xx_bytes((value & ((1 << 8 * size) - 1)).to_bytes(size, "little"), seed)

    if kind == "float":
        return lambda x, seed: whole(_bits(x, single=size == 4), seed)
    if kind == "string":
        return lambda x, seed: xx_bytes(x.encode(), seed)
    if kind == "binary":
        return xx_bytes
    if kind == "decimal":
        return lambda x, seed: whole(_unscaled(x, dtype.scale), seed)
    return whole


def _unscaled(value: Decimal, scale: int) -> int:
    return int(value.scaleb(scale))


def _or_seed(body: Callable[[Any, int], int]) -> Callable[[Any, int], int]:
    return lambda x, seed: seed if x is None else body(x, seed)


def _stored(node: Node, name: str) -> Node:
    """The value as what is hashed: days, microseconds and truths as whole numbers."""
    kind = family(node.dtype)
    if pa.types.is_list(node.dtype) and family(node.dtype.value_type) in _HASHED:
        return node
    if kind == "nested" or (kind == "decimal" and node.dtype.precision > 18):
        raise Refused(f"{name}() of {name_of(node.dtype)}", "hash its parts")
    if kind == "boolean":
        return cast(node, INT)
    if kind in ("date", "timestamp", "timestamp_ntz"):
        return call("stored", (node,), INT if kind == "date" else LONG)
    return cast(node, INT) if kind in ("integer", "null") and node.dtype != LONG else node


def _row_hash(name: str, dtype: pa.DataType) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        found: Node = Literal(42, dtype)
        for arg in args:
            found = call(name, (_stored(arg, name), found), dtype)
        return found

    return build


def _row_form(name: str, of: Callable[[pa.DataType], Callable[[Any, int], int]], dtype: pa.DataType) -> Form:
    def form(node: Call, a: list[str]) -> str:
        given = node.args[0].dtype
        signature = (
            duckdb_type(given).lower().replace("(", "_").replace(")", "").replace(",", "_").replace("[]", "_list")
        )
        parameters = f"{duckdb_type(given).replace(' ', '')} {duckdb_type(dtype)}"
        udf = define(f"{name}_{signature}", parameters, dtype, _or_seed(of(given)), strict=False)
        return f"{udf}({a[0]}, {a[1]})"

    return form


def _stored_form(node: Call, a: list[str]) -> str:
    return f"CAST({a[0]} - DATE '1970-01-01' AS INTEGER)" if node.dtype == INT else f"epoch_us({a[0]})"


FUNCTIONS = (
    _hashed("md5", "md5", "md5({0})"),
    _hashed("sha", "sha1", "sha1({0})"),
    _hashed("sha1", "sha1", "sha1({0})"),
    Function(
        "sha2",
        "hash",
        _sha2,
        2,
        2,
        {"sha256": "sha256({0})", **{f"sha{bits}": f"{udf}({{0}})" for bits, udf in _SHA_UDFS.items()}},
    ),
    _hashed("crc32", "crc32", f"{_CRC}({{0}})", LONG),
    Function("hash", "hash", _row_hash("hash", INT), 1, MANY, {"hash": _row_form("hash", _murmur, INT)}),
    Function(
        "xxhash64",
        "hash",
        _row_hash("xxhash64", LONG),
        1,
        MANY,
        {"xxhash64": _row_form("xxhash64", _xx, LONG), "stored": _stored_form},
    ),
)
