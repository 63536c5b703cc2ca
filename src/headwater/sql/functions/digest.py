"""Fingerprints and spellings of bytes: md5, sha, hex, base64."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.sql.casts import cast
from headwater.sql.functions.function import Form, Function
from headwater.sql.nodes import Literal, Node, Refused, call
from headwater.sql.types import STRING, family, name_of

__all__ = ["FUNCTIONS"]


def _bytes(node: Node, name: str) -> Node:
    if family(node.dtype) not in ("string", "binary", "null"):
        raise Refused(f"{name}() of {name_of(node.dtype)}", "cast it to a string first")
    return cast(node, pa.binary())


def _hashed(name: str, op: str, form: Form) -> Function:
    def build(args: Sequence[Node]) -> Node:
        return call(op, (_bytes(args[0], name),), STRING)

    return Function(name, "hash", build, 1, 1, {op: form})


def _sha2(args: Sequence[Node]) -> Node:
    bits = args[1].value if isinstance(args[1], Literal) else None
    if bits not in (0, 256):
        raise Refused("sha2() of another length than 256", "use sha2(x, 256)")
    return call("sha256", (_bytes(args[0], "sha2"),), STRING)


def _hex(args: Sequence[Node]) -> Node:
    return call("hex", (_bytes(args[0], "hex"),), STRING)


FUNCTIONS = (
    _hashed("md5", "md5", "md5({0})"),
    _hashed("sha", "sha1", "sha1({0})"),
    _hashed("sha1", "sha1", "sha1({0})"),
    Function("sha2", "hash", _sha2, 2, 2, {"sha256": "sha256({0})"}),
    Function("hex", "hash", _hex, 1, 1, {"hex": "hex({0})"}, note="of texts and binaries"),
    _hashed("base64", "base64", "to_base64({0})"),
)
