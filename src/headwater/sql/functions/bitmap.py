"""Bitmaps of 32,768 bits in binaries, by which different whole numbers are counted.

A number n lies in bucket (n - 1) / 32768 + 1 at the bit (n - 1) % 32768, so that each bucket has one bitmap of 4,096
bytes. Bitmaps that are put together may be shorter: what they lack is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from headwater.sql.casts import cast
from headwater.sql.functions.function import AggregateForm, Apply, Function
from headwater.sql.functions.typing import argument, simple
from headwater.sql.nodes import AggregateCall, Node, Refused, WindowCall, call
from headwater.sql.types import LONG, family, name_of
from headwater.sql.udfs import Failed, define

__all__ = ["FUNCTIONS"]

_BYTES = 4_096
_BITS = 8 * _BYTES
_BINARY = pa.binary()


def _constructed(places: list[int | None] | None) -> bytes:
    made = bytearray(_BYTES)
    for place in places or ():
        if place is None:
            continue
        if not 0 <= place < _BITS:
            raise Failed(f"a bit {place} of a bitmap of {_BITS}", "pass bitmap_bit_position(x)")
        made[place >> 3] |= 1 << (place & 7)
    return bytes(made)


def _put_together(start: int, operation: Callable[[int, int], int]) -> Callable[[list[bytes | None] | None], bytes]:
    def body(bitmaps: list[bytes | None] | None) -> bytes:
        found = int.from_bytes(bytes([start]) * _BYTES, "little")
        for bitmap in bitmaps or ():
            if bitmap is not None:
                found = operation(found, int.from_bytes(bitmap[:_BYTES].ljust(_BYTES, b"\0"), "little"))
        return found.to_bytes(_BYTES, "little")

    return body


def _of_many(name: str, kind: str, body: Callable[..., bytes]) -> tuple[AggregateForm, str]:
    udf = define(name, f"{kind}[]", _BINARY, body, strict=False)

    def form(_: AggregateCall | WindowCall, a: list[str], apply: Apply) -> str:
        return f"{udf}({apply('list', a[0])})"

    return form, name


def _places(args: Sequence[Node]) -> Node:
    return AggregateCall("bitmap_construct_agg", (argument("l", args[0], "bitmap_construct_agg"),), _BINARY)


def _bitmaps(name: str) -> Callable[[Sequence[Node]], Node]:
    def build(args: Sequence[Node]) -> Node:
        if family(args[0].dtype) not in ("binary", "null"):
            raise Refused(f"{name}() of {name_of(args[0].dtype)}", "pass bitmaps, which are binaries")
        return AggregateCall(name, (cast(args[0], _BINARY),), _BINARY)

    return build


def _count(args: Sequence[Node]) -> Node:
    if family(args[0].dtype) != "binary":
        raise Refused(f"bitmap_count() of {name_of(args[0].dtype)}", "pass a binary")
    return call("bitmap_count", tuple(args), LONG)


_AGGREGATES = (
    (*_of_many("bitmap_construct_agg", "BIGINT", _constructed), _places, bytes(_BYTES)),
    (*_of_many("bitmap_or_agg", "BLOB", _put_together(0, int.__or__)), _bitmaps("bitmap_or_agg"), bytes(_BYTES)),
    (
        *_of_many("bitmap_and_agg", "BLOB", _put_together(0xFF, int.__and__)),
        _bitmaps("bitmap_and_agg"),
        b"\xff" * _BYTES,
    ),
)
_POSITION = f"(CASE WHEN {{0}} > 0 THEN {{0}} - 1 ELSE -{{0}} END % {_BITS})"
_BUCKET = f"(CASE WHEN {{0}} > 0 THEN ({{0}} - 1) // {_BITS} + 1 ELSE {{0}} // {_BITS} END)"
_COUNT = define("bitmap_count", "BLOB", LONG, lambda x: int.from_bytes(x, "little").bit_count())
FUNCTIONS = (
    simple("bitmap_bit_position", "bitmap", "l", LONG, _POSITION, fallible=True, spark=("BitmapBitPosition",)),
    simple("bitmap_bucket_number", "bitmap", "l", LONG, _BUCKET, spark=("BitmapBucketNumber",)),
    Function("bitmap_count", "bitmap", _count, 1, 1, {"bitmap_count": f"{_COUNT}({{0}})"}, spark=("BitmapCount",)),
    *(
        Function(name, "bitmap", build, 1, 1, kind="aggregate", aggregate_form=form, empty=empty)
        for form, name, build, empty in _AGGREGATES
    ),
)
