"""Letters one by one: case, order, sound and distance; beyond ASCII in Python, which follows the same tables as Spark's
ICU.

A character that this Python's Unicode does not know yet may have a case in Spark's: a text with one raises.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence

import pyarrow as pa

from headwater.sql.functions.function import Builder, Form, Function
from headwater.sql.functions.typing import argument, simple
from headwater.sql.nodes import Call, Literal, Node, Refused, call
from headwater.sql.types import BOOLEAN, INT, NULL, STRING, family
from headwater.sql.udfs import Failed, define

__all__ = ["FUNCTIONS"]

# Lower-case letters that got their upper case in Unicode 16, which Spark has and older Pythons have not.
_NEW_CASE = set("\u019b\u0264\ua7d3\ua7d5")


def _cased(change: Callable[[str], str], name: str) -> Callable[[str], str]:
    def call_(text: str) -> str:
        if not text.isascii() and any(unicodedata.category(c) == "Cn" or c in _NEW_CASE for c in text):
            raise Failed(f"{name}() of a character that is too new")
        return change(text)

    return call_


def _titled(text: str) -> str:
    return " ".join(word[:1].title() + word.lower()[len(word[:1].lower()) :] for word in text.split(" "))


def _translated(text: str, source: str, target: str) -> str:
    table: dict[int, str | None] = {}
    for at, char in enumerate(source):
        table.setdefault(ord(char), target[at] if at < len(target) else None)
    return text.translate(table)


_CODES = "01230127022455012623017202"


def _soundex(text: str) -> str:
    data = text.encode()
    first = data[:1].upper()
    if not first.isalpha():
        return text
    out, last = first.decode(), _CODES[first[0] - 65]
    for byte in data[1:]:
        letter = bytes([byte]).upper()
        if not letter.isalpha():
            last = "0"
            continue
        code = _CODES[letter[0] - 65]
        if code == "7":
            continue
        if code not in ("0", last):
            out += code
            if len(out) == 4:
                break
        last = code
    return out.ljust(4, "0")


def _levenshtein(a: str, b: str) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, start=1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


def _within(a: str, b: str, limit: int) -> int:
    found = _levenshtein(a, b)
    return found if found <= limit else -1


def _luhn(text: str) -> bool:
    if not text or not text.isascii() or not text.isdigit():
        return False
    digits = [int(c) for c in reversed(text)]
    return (sum(digits[::2]) + sum(sum(divmod(2 * d, 10)) for d in digits[1::2])) % 10 == 0


def _masked(text: str | None, upper: str | None, lower: str | None, digit: str | None, other: str | None) -> str | None:
    if text is None:
        return None
    if not text.isascii():
        raise Failed("mask() of text outside ASCII")

    def one(char: str) -> str:
        kept = upper if char.isupper() else lower if char.islower() else digit if char.isdigit() else other
        return char if kept is None else kept

    return "".join(map(one, text))


_TEXT = {
    name: define(name, "VARCHAR", STRING, body)
    for name, body in {
        "upper": _cased(str.upper, "upper"),
        "lower": _cased(str.lower, "lower"),
        "initcap": _cased(_titled, "initcap"),
        "reverse": lambda s: s[::-1],
        "soundex": _soundex,
    }.items()
}
_TRANSLATE = define("translate", "VARCHAR VARCHAR VARCHAR", STRING, _translated)
_LEVENSHTEIN = define("levenshtein", "VARCHAR VARCHAR", INT, _levenshtein)
_WITHIN = define("levenshtein_within", "VARCHAR VARCHAR INTEGER", INT, _within)
_REVERSED_BYTES = define("reverse_bytes", "BLOB", pa.binary(), lambda x: x[::-1])
_LUHN = define("luhn_check", "VARCHAR", BOOLEAN, _luhn)
_MASK = define("mask", "VARCHAR VARCHAR VARCHAR VARCHAR VARCHAR", STRING, _masked, strict=False)
_CHAR = define("char", "BIGINT", STRING, lambda n: "" if n < 0 else chr(n & 0xFF))


def _letters(op: str) -> Builder:
    return lambda args: call(op, (argument("s", args[0], op),), STRING, fallible=True)


def _letters_form(name: str) -> Form:
    def form(_: Call, a: list[str]) -> str:
        ascii_only = f"strlen({a[0]}) = length({a[0]})"
        return f"(CASE WHEN {ascii_only} THEN {name}({a[0]}) ELSE {_TEXT[name]}({a[0]}) END)"

    return form


def _reverse(args: Sequence[Node]) -> Node:
    if family(args[0].dtype) == "nested":
        raise Refused("reverse() of this", "reverse a text")
    if family(args[0].dtype) == "binary":
        return call("reverse bytes", tuple(args), pa.binary())
    return call("reverse", (argument("s", args[0], "reverse"),), STRING)


def _distance(args: Sequence[Node]) -> Node:
    texts = tuple(argument("s", a, "levenshtein") for a in args[:2])
    if len(args) == 2:
        return call("levenshtein", texts, INT)
    return call("levenshtein within", (*texts, argument("i", args[2], "levenshtein")), INT)


def _mask(args: Sequence[Node]) -> Node:
    defaults = [Literal("X", STRING), Literal("x", STRING), Literal("n", STRING), Literal(None, STRING)]
    given = [argument("s", a, "mask") for a in args[1:]]
    for one in given:
        constant = isinstance(one, Literal)
        if not constant or (one.value is not None and len(str(one.value)) != 1):  # type: ignore[union-attr]
            raise Refused("mask() with this replacement", "write one character, or NULL to keep what is there")
    return call("mask", (argument("s", args[0], "mask"), *given, *defaults[len(given) :]), STRING, fallible=True)


def _soundex_call(args: Sequence[Node]) -> Node:
    if args[0].dtype not in (STRING, NULL):
        raise Refused("soundex() of something else than a text", "cast it to a string first")
    return call("soundex", (argument("s", args[0], "soundex"),), STRING)


_NEW = "a character newer than this Python's Unicode raises"
FUNCTIONS: tuple[Function, ...] = (
    Function("lower", "string", _letters("lower"), 1, 1, {"lower": _letters_form("lower")}, note=_NEW),
    Function("upper", "string", _letters("upper"), 1, 1, {"upper": _letters_form("upper")}, note=_NEW),
    Function("ucase", "string", _letters("upper"), 1, 1, note=_NEW),
    Function("lcase", "string", _letters("lower"), 1, 1, note=_NEW),
    Function("initcap", "string", _letters("initcap"), 1, 1, {"initcap": f"{_TEXT['initcap']}({{0}})"}, note=_NEW),
    Function(
        "reverse",
        "string",
        _reverse,
        1,
        1,
        {"reverse": _letters_form("reverse"), "reverse bytes": f"{_REVERSED_BYTES}({{0}})"},
    ),
    simple("translate", "string", "sss", STRING, f"{_TRANSLATE}({{0}}, {{1}}, {{2}})"),
    Function("soundex", "string", _soundex_call, 1, 1, {"soundex": f"{_TEXT['soundex']}({{0}})"}),
    Function(
        "levenshtein",
        "string",
        _distance,
        2,
        3,
        {"levenshtein": f"{_LEVENSHTEIN}({{0}}, {{1}})", "levenshtein within": f"{_WITHIN}({{0}}, {{1}}, {{2}})"},
    ),
    simple("luhn_check", "string", "s", BOOLEAN, f"{_LUHN}({{0}})"),
    Function(
        "mask",
        "string",
        _mask,
        1,
        5,
        {"mask": f"{_MASK}({{0}}, {{1}}, {{2}}, {{3}}, {{4}})"},
        note="ASCII only",
    ),
    simple("char", "string", "l", STRING, f"{_CHAR}({{0}})"),
    simple("chr", "string", "l", STRING, None, op="char"),
)
