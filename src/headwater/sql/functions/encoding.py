"""Texts as bytes and bytes as texts: character sets, hex, base64, and the escapes of addresses.

Where Spark carries on with broken text (a binary that is not UTF-8 becomes a string), this raises.
"""

from __future__ import annotations

import base64
import re
import urllib.parse
from collections.abc import Sequence

import pyarrow as pa

from headwater.sql.casts import cast
from headwater.sql.functions.conditional import chosen
from headwater.sql.functions.function import MANY, Builder, Form, Function
from headwater.sql.functions.typing import argument, simple
from headwater.sql.nodes import Call, Literal, Node, Refused, call
from headwater.sql.types import LONG, NULL, STRING, family, name_of
from headwater.sql.udfs import Failed, define

__all__ = ["FUNCTIONS", "unescaped"]

_BINARY = pa.binary()
# Java's names; UTF-16 and UTF-32 without an order are big-endian, and UTF-16 begins with its mark.
_CHARSETS = {
    "UTF-8": "utf-8",
    "US-ASCII": "ascii",
    "ISO-8859-1": "latin-1",
    "UTF-16BE": "utf-16-be",
    "UTF-16LE": "utf-16-le",
    "UTF-16": "utf-16-be",
    "UTF-32": "utf-32-be",
}
_HEX = re.compile(rb"[0-9A-Fa-f]*")
_LENIENT = re.compile(r"([A-Za-z0-9+/]*)(={0,2})", re.ASCII)
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", re.ASCII)


def _codec(charset: str) -> str:
    found = _CHARSETS.get(charset.upper())
    if found is None:
        raise Failed(f"the character set {charset!r} is not known here", f"name one of {', '.join(_CHARSETS)}")
    return found


def _encoded(text: str, charset: str) -> bytes:
    mark = b"\xfe\xff" if charset.upper() == "UTF-16" and text else b""
    try:
        return mark + text.encode(_codec(charset))
    except UnicodeEncodeError:
        raise Failed(f"a character that {charset} does not have") from None


def _decoded(data: bytes, charset: str) -> str:
    codec = _codec(charset)
    if charset.upper() == "UTF-16":
        codec = "utf-16-le" if data.startswith(b"\xff\xfe") else codec
        data = data[2:] if data[:2] in (b"\xfe\xff", b"\xff\xfe") else data
    elif charset.upper() == "UTF-32" and data[:4] in (b"\x00\x00\xfe\xff", b"\xff\xfe\x00\x00"):
        codec = "utf-32-le" if data[0] else codec
        data = data[4:]
    try:
        return data.decode(codec)
    except UnicodeDecodeError:
        raise Failed(f"bytes that are not {charset}") from None


def _unhexed(text: str) -> bytes | None:
    data = text.encode()
    if not _HEX.fullmatch(data):
        return None
    return bytes.fromhex(("0" if len(data) % 2 else "") + text)


def _from_base64_or_none(text: str) -> bytes | None:
    """What Spark takes for base64: blanks before the padding, which is right or not there, and no letter left over."""
    before, mark, after = text.partition("=")
    bare = "".join(c for c in before if not c.isspace() or c in "\xa0\u2007\u202f")
    match = _LENIENT.fullmatch(bare + mark + after)
    if match is None:
        return None
    letters, padding = match.groups()
    if len(letters) % 4 == 1 or (padding and (len(letters) + len(padding)) % 4):
        return None
    return base64.b64decode(letters + "=" * (-len(letters) % 4))


def _from_base64(text: str) -> bytes:
    bare = re.sub("[\r\n]", "", text)
    if not _BASE64.fullmatch(bare):
        # Java skips what is not base64, and fails in some cases: there is no rule worth repeating.
        raise Failed("a text that is not base64")
    return base64.b64decode(bare)


def _to_base64(data: bytes) -> str:
    text = base64.b64encode(data).decode()
    return "\r\n".join(text[at : at + 76] for at in range(0, len(text), 76))


def _demanded(found: bytes | None, what: str) -> bytes:
    if found is None:
        raise Failed(f"a text that is not {what}")
    return found


def _escaped(text: str) -> str:
    return urllib.parse.quote_plus(text, safe="*-._").replace("~", "%7E")


def unescaped(text: str) -> str:
    """The text behind an address's escapes, or `Failed`."""
    if re.search("%(?![0-9A-Fa-f]{2})", text):
        raise Failed("an escape of an address that is none")
    try:
        return urllib.parse.unquote_plus(text, errors="strict")
    except UnicodeDecodeError:
        raise Failed("an escape of an address that is not UTF-8") from None


_ENCODE = define("encode", "VARCHAR VARCHAR", _BINARY, _encoded)
_DECODE = define("decode", "BLOB VARCHAR", STRING, _decoded)
_UNHEX = define("unhex", "VARCHAR", _BINARY, _unhexed)
_UNHEX_STRICT = define("unhex_strict", "VARCHAR", _BINARY, lambda s: _demanded(_unhexed(s), "hexadecimal"))
_BASE64_LINES = define("base64", "BLOB", STRING, _to_base64)
_UNBASE64 = define("unbase64", "VARCHAR", _BINARY, _from_base64)
_TRY_UNBASE64 = define("try_unbase64", "VARCHAR", _BINARY, _from_base64_or_none)
_URL_ENCODE = define("url_encode", "VARCHAR", STRING, _escaped)
_URL_DECODE = define("url_decode", "VARCHAR", STRING, unescaped)


def _charset(node: Node, name: str) -> Node:
    if isinstance(node, Literal) and isinstance(node.value, str) and node.value.upper() not in _CHARSETS:
        raise Refused(f"the character set {node.value!r}", f"use one of {', '.join(_CHARSETS)}")
    return argument("s", node, name)


def _encode(args: Sequence[Node]) -> Node:
    given = (argument("s", args[0], "encode"), _charset(args[1], "encode"))
    return call("encode text", given, _BINARY, fallible=True)


def _decode(args: Sequence[Node]) -> Node:
    if len(args) > 2:
        return chosen(args)
    given = (argument("x", args[0], "decode"), _charset(args[1], "decode"))
    return call("decode text", given, STRING, fallible=True)


def _utf8(node: Node) -> bool:
    return isinstance(node, Literal) and isinstance(node.value, str) and node.value.upper() == "UTF-8"


def _encode_form(node: Call, a: list[str]) -> str:
    return f"encode({a[0]})" if _utf8(node.args[1]) else f"{_ENCODE}({a[0]}, {a[1]})"


def _hex(args: Sequence[Node]) -> Node:
    value = args[0]
    if family(value.dtype) in ("integer", "float", "decimal"):
        return call("hex of number", (cast(value, LONG),), STRING)
    if family(value.dtype) not in ("binary", "null"):
        value = argument("s", value, "hex")
    return call("hex", (cast(value, _BINARY),), STRING)


def _binary(name: str, *, safe: bool) -> Builder:
    """to_binary: a text in hex, base64 or UTF-8."""

    def build(args: Sequence[Node]) -> Node:
        form = args[1].value if len(args) == 2 and isinstance(args[1], Literal) else "hex" if len(args) == 1 else None
        if safe and isinstance(form, str) and form.lower() not in ("utf-8", "utf8", "hex", "base64"):
            return Literal(None, _BINARY)
        kind = form.lower() if isinstance(form, str) else ""
        if args[0].dtype not in (STRING, NULL):
            raise Refused(f"{name}() of {name_of(args[0].dtype)}", "pass a text")
        text = cast(args[0], STRING)
        if kind in ("utf-8", "utf8"):
            return cast(text, _BINARY)
        ops = {"hex": ("unhex strict", "unhex"), "base64": ("unbase64", "try unbase64")}
        if kind not in ops:
            raise Refused(f"{name}() by {form!r}", "use 'hex', 'base64' or 'utf-8'")
        return call(ops[kind][safe], (text,), _BINARY, fallible=not safe)

    return build


_FORMS: dict[str, Form] = {
    "unhex strict": f"{_UNHEX_STRICT}({{0}})",
    "try unbase64": f"{_TRY_UNBASE64}({{0}})",
}
# Beyond 76 characters it is broken into lines.
_BASE64_FORM = f"(CASE WHEN octet_length({{0}}) <= 57 THEN to_base64({{0}}) ELSE {_BASE64_LINES}({{0}}) END)"
_SETS = "UTF-8, US-ASCII, ISO-8859-1, UTF-16, UTF-16BE, UTF-16LE, UTF-32"
FUNCTIONS: tuple[Function, ...] = (
    Function("encode", "string", _encode, 2, 2, {"encode text": _encode_form}, note=_SETS),
    Function("decode", "string", _decode, 2, MANY, {"decode text": f"{_DECODE}({{0}}, {{1}})"}, note=_SETS),
    Function("hex", "hash", _hex, 1, 1, {"hex": "hex({0})", "hex of number": "hex({0})"}),
    simple("unhex", "hash", "s", _BINARY, f"{_UNHEX}({{0}})"),
    simple("unbase64", "hash", "s", _BINARY, f"{_UNBASE64}({{0}})", fallible=True, note="with its padding"),
    simple("base64", "hash", "x", STRING, _BASE64_FORM),
    Function("to_binary", "string", _binary("to_binary", safe=False), 1, 2, _FORMS),
    Function("try_to_binary", "string", _binary("try_to_binary", safe=True), 1, 2),
    simple("url_encode", "string", "s", STRING, f"{_URL_ENCODE}({{0}})"),
    simple("url_decode", "string", "s", STRING, f"{_URL_DECODE}({{0}})", fallible=True),
)
