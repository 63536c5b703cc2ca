"""Regular expressions, where Java's and DuckDB's (RE2) are known to mean the same.

Only constant patterns of a common core are taken: characters, ``. ^ $ | ( ) * + ?``, ``{n,m}``, classes without nesting, and ``\\\\d \\\\w \\\\s`` with their
opposites. Where the two differ it is rewritten: ``.`` leaves out all line ends that Java knows, ``\\\\s`` has the vertical
tab. Look-around, back references, possessive and lazy repetition and flags are refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from headwater.sql.functions.function import Function
from headwater.sql.functions.typing import argument
from headwater.sql.nodes import Literal, Node, Refused, call
from headwater.sql.types import BOOLEAN, INT, STRING

__all__ = ["FUNCTIONS", "common_pattern"]

_DOT = r"[^\n\r\x{85}\x{2028}\x{2029}]"
_CLASSES = {"d": "0-9", "w": "A-Za-z0-9_", "s": r" \t\n\x0B\f\r"}
_PIECE = re.compile(
    r"(?P<escape>\\[dwsDWS.\\+*?()\[\]{}|^$/-])|(?P<class>\[\^?(?:\\[dws.\\\]\[^-]|[^\\\[\]&^])+\])"
    r"|(?P<group>\((?![?*]))|(?P<close>\))|(?P<repeat>(?:[*+?]|\{[0-9]{1,3}(?:,[0-9]{0,3})?\})(?![*+?{]))|(?P<dot>\.)|(?P<or>\|)|(?P<plain>[^\\.\[\](){}|*+?^$])"
)


def common_pattern(node: Node, name: str, *, consumes: bool) -> str:
    """A constant pattern in RE2's spelling, or `Refused`.

    >>> common_pattern(Literal(r"a.c", STRING), "rlike", consumes=False)[:4]
    'a[^\\\\'
    """
    text = node.value if isinstance(node, Literal) else None
    if not isinstance(text, str):
        raise Refused(f"{name}() with a pattern that is no constant", "write the pattern as a text")
    refusal = Refused(f"the pattern {text!r}", "only the core that all engines share is known here")
    out, at = [], 0
    if text.startswith("^"):
        out.append(r"\A")
        at = 1
    while at < len(text):
        if text[at] == "$" and at == len(text) - 1 and not consumes:
            out.append(r"(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])?\z")
            break
        match = _PIECE.match(text, at)
        if match is None or (match.lastgroup == "or" and text[0] == "^"):
            raise refusal
        out.append(_piece(match))
        at = match.end()
    try:
        compiled = re.compile(text)
    except re.error:
        raise refusal from None
    if consumes and compiled.match(""):
        raise refusal
    return "".join(out)


def _piece(match: re.Match[str]) -> str:
    kind, text = match.lastgroup, match.group()
    if kind == "dot":
        return _DOT
    if kind == "escape" and text[1].lower() in _CLASSES:
        return f"[{'^' if text[1].isupper() else ''}{_CLASSES[text[1].lower()]}]"
    if kind == "class":
        return re.sub(r"\\([dws])", lambda m: _CLASSES[m[1]], text)
    return text


def _rlike(args: Sequence[Node]) -> Node:
    pattern = common_pattern(args[1], "rlike", consumes=False)
    return call("rlike", (argument("s", args[0], "rlike"), Literal(pattern, STRING)), BOOLEAN)


def _extract(args: Sequence[Node]) -> Node:
    group = args[2].value if len(args) == 3 and isinstance(args[2], Literal) else 1 if len(args) == 2 else None
    pattern = common_pattern(args[1], "regexp_extract", consumes=True)
    assert isinstance(args[1], Literal) and isinstance(args[1].value, str)
    if not isinstance(group, int) or not 0 <= group <= re.compile(args[1].value).groups:
        raise Refused("regexp_extract() of this group", "name a group of the pattern by its number")
    return call(
        "regexp_extract",
        (argument("s", args[0], "regexp_extract"), Literal(pattern, STRING), Literal(group, INT)),
        STRING,
    )


def _replace(args: Sequence[Node]) -> Node:
    pattern = common_pattern(args[1], "regexp_replace", consumes=True)
    put = args[2].value if isinstance(args[2], Literal) else None
    if not isinstance(put, str) or "\\" in put or "$" in put:
        raise Refused("regexp_replace() with this replacement", "write it as a text without $ and \\")
    given = (argument("s", args[0], "regexp_replace"), Literal(pattern, STRING), Literal(put, STRING))
    return call("regexp_replace", given, STRING)


_CORE = "constant patterns of the core that Java and RE2 share"
FUNCTIONS = (
    Function("rlike", "regexp", _rlike, 2, 2, {"rlike": "regexp_matches({0}, {1})"}, note=_CORE),
    Function("regexp", "regexp", _rlike, 2, 2, note=_CORE),
    Function("regexp_like", "regexp", _rlike, 2, 2, note=_CORE),
    Function(
        "regexp_extract", "regexp", _extract, 2, 3, {"regexp_extract": "regexp_extract({0}, {1}, {2})"}, note=_CORE
    ),
    Function(
        "regexp_replace", "regexp", _replace, 3, 3, {"regexp_replace": "regexp_replace({0}, {1}, {2}, 'g')"}, note=_CORE
    ),
)
