"""Pieces of texts and binaries: split, pad, cut, put over; positions count characters from 1, of binaries bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import AnyStr

import pyarrow as pa

from headwater.sql.functions.function import Builder, Form, Function
from headwater.sql.functions.regexp import pattern_argument, regexp_udf
from headwater.sql.functions.typing import argument, simple
from headwater.sql.java_regexp import found
from headwater.sql.nodes import Call, Literal, Node, Refused, call
from headwater.sql.types import INT, STRING, family
from headwater.sql.udfs import Failed, define

__all__ = ["FUNCTIONS"]

_BINARY = pa.binary()
_MOST = 2**31 - 1


def _cut(value: AnyStr, start: int, length: int) -> AnyStr:
    """A substring as SQL counts: 0 is 1, negative from the end;
    what lies before the beginning is cut off the length.
    """
    first = start - 1 if start > 0 else len(value) + start if start < 0 else 0
    last = min(max(first + length, 0), len(value))
    return value[max(first, 0) : last] if last > max(first, 0) else value[:0]


def _padded(value: AnyStr, width: int, pad: AnyStr, *, left: bool) -> AnyStr:
    if width <= 0:
        if isinstance(value, bytes) and width < 0:
            raise Failed("a binary cannot be padded to a negative length")
        return value[:0]
    missing = width - len(value)
    if missing <= 0 or not pad:
        return value[:width]
    filling = (pad * (missing // len(pad) + 1))[:missing]
    return filling + value if left else value + filling


def _split(text: str, pattern: str, limit: int) -> list[str]:
    if text and not pattern:
        # Between the characters, as often as the limit allows.
        count = len(text) if limit <= 0 else min(limit, len(text))
        return [*text[: count - 1], text[count - 1 :]] if 0 < limit < len(text) else list(text)
    out: list[str] = []
    at = 0
    for match in found(pattern, text):
        if limit > 0 and len(out) == limit - 1:
            break
        if at == 0 and match.start() == match.end() == 0:
            continue  # nothing before an empty match at the beginning
        out.append(text[at : match.start()])
        at = match.end()
    return [*out, text[at:]]


def _part(text: str, mark: str, number: int) -> str:
    if number == 0:
        raise Failed("split_part() counts from 1")
    parts = text.split(mark) if mark else [text]
    at = number - 1 if number > 0 else len(parts) + number
    return parts[at] if 0 <= at < len(parts) else ""


def _before(text: str, mark: str, count: int) -> str:
    if not mark or count == 0:
        return ""
    at = -1
    if count > 0:
        for _ in range(count):
            at = text.find(mark, at + 1)
            if at < 0:
                return text
        return text[:at]
    at = len(text) - len(mark) + 1
    for _ in range(-count):
        at = text.rfind(mark, 0, at + len(mark) - 1) if at + len(mark) - 1 > 0 else -1
        if at < 0:
            return text
    return text[at + len(mark) :]


def _located(mark: str | None, text: str | None, start: int | None) -> int | None:
    if start is None:
        return 0
    if mark is None or text is None:
        return None
    if start < 1:
        return 0
    return text.find(mark, start - 1) + 1 if mark else 1


def _overlaid(value: AnyStr, put: AnyStr, start: int, length: int) -> AnyStr:
    size = length if length >= 0 else len(put)
    return _cut(value, 1, start - 1) + put + _cut(value, start + size, _MOST)


def _in_set(mark: str, texts: str) -> int:
    parts = texts.split(",")
    return parts.index(mark) + 1 if "," not in mark and mark in parts else 0


_LPAD = define("lpad", "VARCHAR INTEGER VARCHAR", STRING, lambda s, n, p: _padded(s, n, p, left=True))
_RPAD = define("rpad", "VARCHAR INTEGER VARCHAR", STRING, lambda s, n, p: _padded(s, n, p, left=False))
_LPAD_BYTES = define("lpad_bytes", "BLOB INTEGER BLOB", _BINARY, lambda s, n, p: _padded(s, n, p, left=True))
_RPAD_BYTES = define("rpad_bytes", "BLOB INTEGER BLOB", _BINARY, lambda s, n, p: _padded(s, n, p, left=False))
_CUT_BYTES = define("cut_bytes", "BLOB INTEGER INTEGER", _BINARY, _cut)
_SPLIT = regexp_udf("split", "VARCHAR VARCHAR INTEGER", pa.list_(STRING), _split)
_PART = define("split_part", "VARCHAR VARCHAR INTEGER", STRING, _part)
_BEFORE = define("substring_index", "VARCHAR VARCHAR INTEGER", STRING, _before)
_LOCATE = define("locate", "VARCHAR VARCHAR INTEGER", INT, _located, strict=False)
_OVERLAY = define("overlay", "VARCHAR VARCHAR INTEGER INTEGER", STRING, _overlaid)
_OVERLAY_BYTES = define("overlay_bytes", "BLOB BLOB INTEGER INTEGER", _BINARY, _overlaid)
_IN_SET = define("find_in_set", "VARCHAR VARCHAR", INT, _in_set)


def _pad(op: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        width = argument("i", args[1], op)
        kinds = {family(a.dtype) for a in (args[0], *args[2:])}
        if kinds == {"binary"}:
            pad = args[2] if len(args) == 3 else Literal(b"\0", _BINARY)
            return call(f"{op} bytes", (args[0], width, pad), _BINARY, fallible=True)
        if "binary" in kinds:
            raise Refused(f"{op}() of a binary and a text", "cast one of them")
        pad = argument("s", args[2], op) if len(args) == 3 else Literal(" ", STRING)
        return call(op, (argument("s", args[0], op), width, pad), STRING)

    return build


def _pad_form(op: str, general: str) -> Form:
    def form(node: Call, a: list[str]) -> str:
        pad = node.args[2]
        if not isinstance(pad, Literal) or not pad.value:
            return f"{general}({', '.join(a)})"
        return f"(CASE WHEN {a[1]} IS NULL THEN NULL ELSE {op}({a[0]}, greatest({a[1]}, 0), {a[2]}) END)"

    return form


def _ends(op: str) -> Builder:
    """left and right: left of a binary gives its bytes, right of it a text."""

    def build(args: Sequence[Node]) -> Node:
        count = argument("i", args[1], op)
        if family(args[0].dtype) == "binary" and op == "left":
            return call("left bytes", (args[0], count), _BINARY)
        return call(op, (argument("s", args[0], op), count), STRING)

    return build


def _split_call(args: Sequence[Node]) -> Node:
    limit = argument("i", args[2], "split") if len(args) == 3 else Literal(-1, INT)
    given = (argument("s", args[0], "split"), pattern_argument(args[1], "split"), limit)
    return call("split", given, pa.list_(pa.field("element", STRING)), fallible=True)


def _locate(args: Sequence[Node]) -> Node:
    mark, text = argument("s", args[0], "locate"), argument("s", args[1], "locate")
    if len(args) == 2 or (isinstance(args[2], Literal) and args[2].value == 1):
        return call("instr", (text, mark), INT)
    return call("locate", (mark, text, argument("i", args[2], "locate")), INT)


def _overlay(args: Sequence[Node]) -> Node:
    binary = [family(a.dtype) == "binary" for a in args[:2]]
    if any(binary) and not all(binary):
        raise Refused("overlay() of a binary and a text", "cast one of them")
    values = tuple(args[:2]) if all(binary) else tuple(argument("s", a, "overlay") for a in args[:2])
    start = argument("i", args[2], "overlay")
    length = argument("i", args[3], "overlay") if len(args) == 4 else Literal(-1, INT)
    dtype = _BINARY if all(binary) else STRING
    return call("overlay bytes" if all(binary) else "overlay", (*values, start, length), dtype)


def _is_plain(node: Call) -> bool:
    """Are the mark and the number constants that DuckDB's own function takes as Spark does?"""
    mark, number = node.args[1], node.args[2]
    return isinstance(mark, Literal) and bool(mark.value) and isinstance(number, Literal) and bool(number.value)


def _part_form(node: Call, a: list[str]) -> str:
    return f"{'split_part' if _is_plain(node) else _PART}({', '.join(a)})"


def _before_form(node: Call, a: list[str]) -> str:
    count = node.args[2]
    mark = node.args[1]
    # A longer mark may overlap itself, which Spark counts and DuckDB does not.
    plain = _is_plain(node) and isinstance(mark, Literal) and len(str(mark.value)) == 1
    if not plain or not isinstance(count, Literal) or not isinstance(count.value, int):
        return f"{_BEFORE}({', '.join(a)})"
    part = f"[:{count.value}]" if count.value > 0 else f"[{count.value}:]"
    return f"array_to_string(string_split({a[0]}, {a[1]}){part}, {a[1]})"


def _left_form(word: str) -> Form:
    return f"(CASE WHEN {{0}} IS NULL OR {{1}} IS NULL THEN NULL ELSE {word}({{0}}, greatest({{1}}, 0)) END)"


_PADS: dict[str, Form] = {
    "lpad bytes": f"{_LPAD_BYTES}({{0}}, {{1}}, {{2}})",
    "rpad bytes": f"{_RPAD_BYTES}({{0}}, {{1}}, {{2}})",
    "left bytes": f"{_CUT_BYTES}({{0}}, 1, {{1}})",
    "cut bytes": f"{_CUT_BYTES}({{0}}, {{1}}, {{2}})",
}
FUNCTIONS: tuple[Function, ...] = (
    Function("lpad", "string", _pad("lpad"), 2, 3, {"lpad": _pad_form("lpad", _LPAD), **_PADS}),
    Function("rpad", "string", _pad("rpad"), 2, 3, {"rpad": _pad_form("rpad", _RPAD)}),
    Function("left", "string", _ends("left"), 2, 2, {"left": _left_form("left")}),
    Function("right", "string", _ends("right"), 2, 2, {"right": _left_form("right")}),
    Function("split", "string", _split_call, 2, 3, {"split": f"{_SPLIT}({{0}}, {{1}}, {{2}})"}),
    simple("split_part", "string", "ssi", STRING, _part_form, fallible=True),
    simple("substring_index", "string", "ssi", STRING, _before_form),
    Function("locate", "string", _locate, 2, 3, {"locate": f"{_LOCATE}({{0}}, {{1}}, {{2}})"}),
    Function("position", "string", _locate, 2, 3),
    Function(
        "overlay",
        "string",
        _overlay,
        3,
        4,
        {
            "overlay": f"{_OVERLAY}({{0}}, {{1}}, {{2}}, {{3}})",
            "overlay bytes": f"{_OVERLAY_BYTES}({{0}}, {{1}}, {{2}}, {{3}})",
        },
    ),
    simple("find_in_set", "string", "ss", INT, f"{_IN_SET}({{0}}, {{1}})"),
)
