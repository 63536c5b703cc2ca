"""Parts of addresses, as Java's ``URI`` has them: parse_url and its kin.

The problem: Java reads an address by RFC 2396 and refuses what does not keep to it, and other libraries forgive. The
idea: the address is cut by that RFC's own expression, and each part is checked for the characters that it may have. A
host is one only where the authority is ``user@host:port``; anything else is a name in some registry, which has none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from headwater.sql.functions.encoding import unescaped
from headwater.sql.functions.function import Function
from headwater.sql.functions.typing import argument, constant
from headwater.sql.nodes import Node, Refused, call
from headwater.sql.types import STRING
from headwater.sql.udfs import Failed, define

__all__ = ["FUNCTIONS"]

_WHOLE = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*", re.ASCII)
# Letters beyond ASCII are allowed, blanks and controls beyond it are not.
_LEGAL = re.compile(r"(?:[A-Za-z0-9_\-!.~'()*,;:$&+=@/?\[\]]|%[0-9A-Fa-f]{2}|[^\x00-\x9f\s\u2028\u2029])*", re.DOTALL)
_LABELS = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9\-]*[A-Za-z0-9])?\.)*[A-Za-z](?:[A-Za-z0-9\-]*[A-Za-z0-9])?\.?", re.ASCII
)
_NUMBERS = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})", re.ASCII)
_SIX = re.compile(r"\[[0-9A-Fa-f:.]+(?:%[\w.\-]+)?\]", re.ASCII)
_SERVER = re.compile(r"(?:(.*)@)?([^@]*?)(?::(\d*))?", re.DOTALL)
_PARTS = ("HOST", "PATH", "QUERY", "REF", "PROTOCOL", "FILE", "AUTHORITY", "USERINFO")


@lru_cache(maxsize=1024)
def _read(address: str) -> dict[str, str | None] | None:
    """The parts by their names, or None where it is no address."""
    match = _WHOLE.fullmatch(address)
    assert match is not None, "every text is cut somehow"
    scheme, authority, path, query, fragment = match.groups()
    if scheme is not None and not _SCHEME.fullmatch(scheme):
        return None
    if scheme is None and authority is None and path.startswith(":"):
        return None
    legal = [p for p in (authority, path, query, fragment) if p is not None]
    # Square brackets are for the numbers of a host, and for what comes after the path.
    if not all(map(_LEGAL.fullmatch, legal)) or re.search(r"[\[\]]", path):
        return None
    if authority == "" and not path and query is None and fragment is None:
        return None
    if scheme is not None and authority is None and not path.startswith("/"):
        if not path and query is None:
            return None
        return {**dict.fromkeys(_PARTS), "PROTOCOL": scheme, "REF": fragment}
    user, host = _server(authority)
    if authority and host is None and re.search(r"[\[\]]", authority):
        return None
    file = path + (f"?{query}" if query is not None else "")
    found = (host, path, query, fragment, scheme, file, authority or None, user)
    return dict(zip(_PARTS, found, strict=True))


def _server(authority: str | None) -> tuple[str | None, str | None]:
    """User and host."""
    match = _SERVER.fullmatch(authority) if authority else None
    if match is None:
        return None, None
    user, host, _ = match.groups()
    numbers = _NUMBERS.fullmatch(host)
    named = all(int(n) <= 255 for n in numbers.groups()) if numbers else bool(_LABELS.fullmatch(host))
    if not named and not _SIX.fullmatch(host):
        return None, None
    return user, host


def _part(address: str, part: str, key: str | None = None, *, safe: bool) -> str | None:
    found = _read(address)
    if found is None:
        if safe:
            return None
        raise Failed(f"{address!r} is no address", "use try_parse_url(), which gives null")
    value = found.get(part)
    if key is None or value is None:
        return value
    if part != "QUERY":
        return None
    match = re.search(f"(?:&|^){key}=([^&]*)", value)
    return match[1] if match else None


def _body(*, safe: bool, keyed: bool) -> str:
    name, parameters = f"{'try_' * safe}parse_url{'_key' * keyed}", "VARCHAR VARCHAR" + " VARCHAR" * keyed
    if keyed:
        return define(name, parameters, STRING, lambda address, part, key: _part(address, part, key, safe=safe))
    return define(name, parameters, STRING, lambda address, part: _part(address, part, safe=safe))


def _decoded(text: str) -> str | None:
    try:
        return unescaped(text)
    except Failed:
        return None


_TRY_DECODE = define("try_url_decode", "VARCHAR", STRING, _decoded)


def _parse(name: str, *, safe: bool) -> Function:
    def build(args: Sequence[Node]) -> Node:
        if len(args) == 3:
            key = constant(args[2], name, "write the key, or use regexp_extract()")
            if re.search(r"[^\w\-]", str(key)):  # Spark reads it as a part of a pattern
                raise Refused(f"{name}() with the key {key!r}", "use regexp_extract()")
        given = tuple(argument("s", a, name) for a in args)
        return call(f"{name}{' key' * (len(args) == 3)}", given, STRING, fallible=not safe)

    forms = {
        name: f"{_body(safe=safe, keyed=False)}({{0}}, {{1}})",
        f"{name} key": f"{_body(safe=safe, keyed=True)}({{0}}, {{1}}, {{2}})",
    }
    return Function(name, "string", build, 2, 3, forms, note="by RFC 2396, as Java reads addresses; keys are constants")


def _try_decode(args: Sequence[Node]) -> Node:
    return call("try_url_decode", (argument("s", args[0], "try_url_decode"),), STRING)


FUNCTIONS = (
    _parse("parse_url", safe=False),
    _parse("try_parse_url", safe=True),
    Function("try_url_decode", "string", _try_decode, 1, 1, {"try_url_decode": f"{_TRY_DECODE}({{0}})"}),
)
