"""Casts: those that raise (ANSI) and those that give null (TRY).

Casts of the time before ANSI mode wrap around and turn texts into nulls as they please; they are refused. A cast
between texts and moments reads its session's time zone: any other than UTC is refused too.
"""

from __future__ import annotations

from headwater.sql.analyzed.datatypes import INTERVAL, dtype_of
from headwater.sql.analyzed.reading import Expressions, expression
from headwater.sql.analyzed.tree import Tree
from headwater.sql.calls import apply_function
from headwater.sql.casts import cast, try_cast
from headwater.sql.nodes import Call, Literal, Node, Refused
from headwater.sql.types import TIMESTAMP, family, name_of

__all__ = ["check_zone"]

_UTC = {"UTC", "Etc/UTC", "GMT", "Z"}
_ZONED = {"timestamp", "timestamp_ntz", "date", "string"}


def check_zone(tree: Tree) -> None:
    """Refuse an expression that Spark computes in another time zone than UTC."""
    zone = tree.fields.get("timeZoneId")
    if zone is not None and zone not in _UTC:
        raise Refused(f"the time zone {zone} of Spark's session", "set spark.sql.session.timeZone to UTC")


@expression("Cast")
def _cast(reader: Expressions, tree: Tree) -> Node:
    node, dtype = reader.read(tree.children[0]), dtype_of(tree.fields["dataType"])
    if dtype == INTERVAL:
        raise Refused("a cast to an interval", "write INTERVAL '3' DAY")
    if {family(node.dtype), family(dtype)} <= _ZONED:
        check_zone(tree)
    mode = tree.fields.get("evalMode")
    if mode == "TRY":
        return try_cast(node, dtype)
    if mode == "ANSI" or node.dtype == dtype or (isinstance(node, Literal) and node.value is None):
        return cast(node, dtype)
    what = f"a cast of {name_of(node.dtype)} to {name_of(dtype)} outside ANSI mode"
    raise Refused(what, "set spark.sql.ansi.enabled to true")


@expression("PreciseTimestampConversion")
def _precise(reader: Expressions, tree: Tree) -> Node:
    """A moment as the count of its microseconds, and back: what window() is made of."""
    node = reader.read(tree.children[0])
    source, target = (tree.fields[side] for side in ("fromType", "toType"))
    if source == "long" and target == "timestamp" and isinstance(node, Call) and node.op == "unix_micros":
        return node.args[0]  # there and back
    if source == "long" and target in ("timestamp", "timestamp_ntz"):
        return cast(apply_function("timestamp_micros", [node]), dtype_of(target))
    if target == "long" and source in ("timestamp", "timestamp_ntz"):
        return apply_function("unix_micros", [cast(node, TIMESTAMP)])
    raise Refused(f"window() over {source}", "cast the time to a timestamp")


@expression("TryEval")
def _tried(reader: Expressions, tree: Tree) -> Node:
    inner = tree.children[0]
    if inner.kind == "ToBinary":  # which gives null by itself
        return reader.read(inner)
    if inner.kind in ("AesDecrypt", "DateAdd", "DateSub"):
        name = {"AesDecrypt": "try_aes_decrypt", "DateAdd": "try_add", "DateSub": "try_subtract"}[inner.kind]
        return apply_function(name, reader.children(inner))
    found = reader.read(inner)
    if found.fallible:
        raise Refused(f"try_ of Spark's {inner.kind}", "use try_cast, or CASE WHEN … END")
    return found
