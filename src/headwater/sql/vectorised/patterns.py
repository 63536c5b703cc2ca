"""LIKE, RLIKE, contains, startswith and endswith with constant patterns.

A LIKE pattern is a prefix, a suffix, an infix or a whole text where its wildcards allow it, and else a regular
expression. The patterns of RLIKE arrive in RE2's spelling, which is the engine of Arrow as it is of DuckDB.
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.sql.nodes import Call
from headwater.sql.types import STRING
from headwater.sql.vectorised.comparison import logical_values
from headwater.sql.vectorised.frame import Kernel
from headwater.sql.vectorised.texts import literal

__all__ = ["OPERATORS"]

_PLAIN = re.compile(r"[A-Za-z0-9 ]", re.ASCII)


def _matching(function: str, pattern: str) -> Kernel:
    match, options = pc.get_function(function), pc.MatchSubstringOptions(pattern)
    return lambda _, a, *__: logical_values(match.call([a.values], options))


def _equal(text: str) -> Kernel:
    equal, other = pc.get_function("equal"), pa.scalar(text, STRING)
    return lambda _, a, *__: logical_values(equal.call([a.values, other]))


def _pieces(pattern: str, escape: str) -> list[Any]:
    """Texts, with True for ``%`` and False for ``_`` between them."""
    out: list[Any] = [""]
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == escape:
            out[-1] += pattern[at + 1]
            at += 1
        elif char in "%_":
            out += [char == "%", ""]
        else:
            out[-1] += char
        at += 1
    return [p for p in out if p != ""]


def _quoted(text: str) -> str:
    return "".join(c if _PLAIN.match(c) else f"\\x{{{ord(c):x}}}" for c in text)


def _like(node: Call) -> Kernel | None:
    pattern, escape = literal(node.args[1], str), literal(node.args[2], str)
    if pattern is None or escape is None:
        return None
    pieces = _pieces(pattern, escape)
    shape = ["t" if isinstance(p, str) else "%" if p else "_" for p in pieces]
    texts = [p for p in pieces if isinstance(p, str)]
    if not shape or shape == ["t"]:
        return _equal("".join(texts))
    if shape == ["t", "%"]:
        return _matching("starts_with", texts[0])
    if shape == ["%", "t"]:
        return _matching("ends_with", texts[0])
    if shape == ["%", "t", "%"]:
        return _matching("match_substring", texts[0])
    body = "".join(_quoted(p) if isinstance(p, str) else "(?s:.*)" if p else "(?s:.)" for p in pieces)
    return _matching("match_substring_regex", rf"\A(?:{body})\z")


def _regexp(node: Call) -> Kernel | None:
    pattern = literal(node.args[1], str)
    return None if pattern is None else _matching("match_substring_regex", pattern)


def _part(node: Call) -> Kernel | None:
    pattern = literal(node.args[1], str)
    name = {"contains": "match_substring", "startswith": "starts_with", "endswith": "ends_with"}[node.op]
    return None if pattern is None else _matching(name, pattern)


OPERATORS = {"like": _like, "rlike": _regexp, **dict.fromkeys(("contains", "startswith", "endswith"), _part)}
