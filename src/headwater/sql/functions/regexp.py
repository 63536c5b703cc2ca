"""Regular expressions with Java's meaning.

A constant pattern of the core that RE2 shares with Java is matched by DuckDB itself: characters, ``. ^ $ | ( ) * + ?``,
``{n,m}``, classes without nesting, and ``\\\\d \\\\w \\\\s`` with their opposites. Where the two differ it is
rewritten: ``.`` leaves out all line ends that Java knows, ``\\\\s`` has the vertical tab. Other patterns go to Python's
engine, by `headwater.sql.java_regexp`, or are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from headwater.sql.functions.function import Form, Function
from headwater.sql.functions.typing import argument, constant
from headwater.sql.java_regexp import RegexpError, compiled, expanded, found
from headwater.sql.nodes import Literal, Node, Refused, Wrong, call
from headwater.sql.operators import like
from headwater.sql.types import BOOLEAN, INT, STRING
from headwater.sql.udfs import Failed, define

__all__ = ["FUNCTIONS", "common_pattern", "pattern_argument", "regexp_udf"]

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
        made = re.compile(text)
    except re.error:
        raise refusal from None
    if consumes and made.match(""):
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


_FAULTS = (
    "missing ), unterminated subpattern",
    "unterminated character set",
    "unbalanced parenthesis",
    "nothing to repeat",
)


def _malformed(pattern: str) -> str | None:
    """Why no engine takes a pattern; None where Java might."""
    try:
        re.compile(pattern)
    except re.error as error:
        return error.msg if error.msg in _FAULTS and "\\Q" not in pattern else None
    return None


def pattern_argument(node: Node, name: str) -> Node:
    """A pattern for Python's engine: a constant is checked at once."""
    if isinstance(node, Literal) and isinstance(node.value, str):
        try:
            compiled(node.value)
        except RegexpError as why:
            if (fault := _malformed(node.value)) is not None:
                hint = "write a backslash before ( ) [ ] { } * + ? to match the character itself"
                raise Wrong(f"the pattern {node.value!r} is no regular expression: {fault}", hint) from None
            raise Refused(str(why), "only what all engines share is known here") from None
    return argument("s", node, name)


def regexp_udf(name: str, parameters: str, returns: pa.DataType, body: Callable[..., Any]) -> str:
    """A function over patterns; one that is not known stops the query with its words."""

    def call_(*args: Any) -> Any:
        try:
            return body(*args)
        except RegexpError as why:
            raise Failed(
                f"{why} is not known here", "write a pattern that Java, RE2 and Python understand alike"
            ) from None

    return define(name, parameters, returns, call_)


def _native(args: Sequence[Node], name: str, *, consumes: bool) -> str | None:
    """The pattern for DuckDB, or None where Python has to match it."""
    try:
        return common_pattern(args[1], name, consumes=consumes)
    except Refused:
        return None


def _two(args: Sequence[Node], name: str) -> tuple[Node, Node]:
    return argument("s", args[0], name), pattern_argument(args[1], name)


def _like(args: Sequence[Node]) -> Node:
    escape = constant(args[2], "like", "escape with one character") if len(args) == 3 else "\\"
    return like(argument("s", args[0], "like"), args[1], str(escape))


def _rlike(args: Sequence[Node]) -> Node:
    native = _native(args, "rlike", consumes=False)
    if native is not None:
        return call("rlike", (argument("s", args[0], "rlike"), Literal(native, STRING)), BOOLEAN)
    return call("rlike in python", _two(args, "rlike"), BOOLEAN, fallible=True)


def _group(text: str, pattern: str, number: int) -> str:
    match = compiled(pattern).search(text)
    _check_group(pattern, number)
    return "" if match is None else match[number] or ""


def _groups(text: str, pattern: str, number: int) -> list[str]:
    _check_group(pattern, number)
    return [m[number] or "" for m in found(pattern, text)]


def _check_group(pattern: str, number: int) -> None:
    if not 0 <= number <= compiled(pattern).groups:
        raise Failed(f"the pattern {pattern!r} has no group {number}", "name a group of the pattern by its number")


def _replaced(text: str, pattern: str, put: str) -> str:
    out, at = "", 0
    for match in found(pattern, text):
        out += text[at : match.start()] + expanded(match, put)
        at = match.end()
    return out + text[at:]


def _place(text: str, pattern: str) -> int:
    match = compiled(pattern).search(text)
    # Java counts a character beyond U+FFFF twice.
    return 0 if match is None else len(text[: match.start()].encode("utf-16-le")) // 2 + 1


def _first(text: str, pattern: str) -> str | None:
    match = compiled(pattern).search(text)
    return None if match is None else match[0] or None


_RLIKE = regexp_udf("rlike", "VARCHAR VARCHAR", BOOLEAN, lambda s, p: compiled(p).search(s) is not None)
_EXTRACT = regexp_udf("regexp_extract", "VARCHAR VARCHAR INTEGER", STRING, _group)
_EXTRACT_ALL = regexp_udf("regexp_extract_all", "VARCHAR VARCHAR INTEGER", pa.list_(STRING), _groups)
_REPLACE = regexp_udf("regexp_replace", "VARCHAR VARCHAR VARCHAR", STRING, _replaced)
_COUNT = regexp_udf("regexp_count", "VARCHAR VARCHAR", INT, lambda s, p: len(found(p, s)))
_INSTR = regexp_udf("regexp_instr", "VARCHAR VARCHAR", INT, _place)
_SUBSTR = regexp_udf("regexp_substr", "VARCHAR VARCHAR", STRING, _first)


def _extract(args: Sequence[Node]) -> Node:
    group = args[2].value if len(args) == 3 and isinstance(args[2], Literal) else 1 if len(args) == 2 else None
    native = _native(args, "regexp_extract", consumes=True)
    if native is not None and isinstance(group, int):
        assert isinstance(args[1], Literal) and isinstance(args[1].value, str)
        if not 0 <= group <= re.compile(args[1].value).groups:
            raise Refused("regexp_extract() of this group", "name a group of the pattern by its number")
        given = (argument("s", args[0], "regexp_extract"), Literal(native, STRING), Literal(group, INT))
        return call("regexp_extract", given, STRING)
    number = argument("i", args[2], "regexp_extract") if len(args) == 3 else Literal(1, INT)
    return call("regexp_extract in python", (*_two(args, "regexp_extract"), number), STRING, fallible=True)


def _extract_all(args: Sequence[Node]) -> Node:
    number = argument("i", args[2], "regexp_extract_all") if len(args) == 3 else Literal(1, INT)
    dtype = pa.list_(pa.field("element", STRING))
    return call("regexp_extract_all", (*_two(args, "regexp_extract_all"), number), dtype, fallible=True)


def _replace(args: Sequence[Node]) -> Node:
    native = _native(args, "regexp_replace", consumes=True)
    put = args[2].value if isinstance(args[2], Literal) else None
    if native is not None and isinstance(put, str) and "\\" not in put and "$" not in put:
        given = (argument("s", args[0], "regexp_replace"), Literal(native, STRING), Literal(put, STRING))
        return call("regexp_replace", given, STRING)
    put_in = argument("s", args[2], "regexp_replace")
    return call("regexp_replace in python", (*_two(args, "regexp_replace"), put_in), STRING, fallible=True)


def _plain(name: str, dtype: pa.DataType, form: Form) -> Function:
    def build(args: Sequence[Node]) -> Node:
        return call(name, _two(args, name), dtype, fallible=True)

    return Function(name, "regexp", build, 2, 2, {name: form}, note=_NOTE)


_NOTE = "patterns that Java, RE2 and Python understand alike; others are refused"
_RLIKE_FORMS: dict[str, Form] = {
    "rlike": "regexp_matches({0}, {1})",
    "rlike in python": f"{_RLIKE}({{0}}, {{1}})",
}
_EXTRACT_FORMS: dict[str, Form] = {
    "regexp_extract": "regexp_extract({0}, {1}, {2})",
    "regexp_extract in python": f"{_EXTRACT}({{0}}, {{1}}, {{2}})",
}
_REPLACE_FORMS: dict[str, Form] = {
    "regexp_replace": "regexp_replace({0}, {1}, {2}, 'g')",
    "regexp_replace in python": f"{_REPLACE}({{0}}, {{1}}, {{2}})",
}
FUNCTIONS = (
    Function("like", "regexp", _like, 2, 3, note="by a constant pattern"),
    Function("rlike", "regexp", _rlike, 2, 2, _RLIKE_FORMS, note=_NOTE),
    Function("regexp", "regexp", _rlike, 2, 2, note=_NOTE),
    Function("regexp_like", "regexp", _rlike, 2, 2, note=_NOTE),
    Function("regexp_extract", "regexp", _extract, 2, 3, _EXTRACT_FORMS, note=_NOTE),
    Function(
        "regexp_extract_all",
        "regexp",
        _extract_all,
        2,
        3,
        {"regexp_extract_all": f"{_EXTRACT_ALL}({{0}}, {{1}}, {{2}})"},
        note=_NOTE,
    ),
    Function("regexp_replace", "regexp", _replace, 3, 3, _REPLACE_FORMS, note=_NOTE),
    _plain("regexp_count", INT, f"{_COUNT}({{0}}, {{1}})"),
    _plain("regexp_instr", INT, f"{_INSTR}({{0}}, {{1}})"),
    _plain("regexp_substr", STRING, f"{_SUBSTR}({{0}}, {{1}})"),
)
