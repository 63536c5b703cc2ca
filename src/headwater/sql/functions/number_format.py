"""Numbers by a picture of their digits: to_number, try_to_number and to_char.

A picture is ``[MI|S] [$] digits [. digits] [PR|MI|S]`` where a digit is 9 or 0 and groups of digits may be separated by
commas. A group before the point that begins with 0 has all its digits, all others may have fewer. G and D are other
names of the comma and the point. What Spark takes beyond that (a currency behind the number, two signs) is refused.

Reading ignores blanks among the digits and compares the groups from the right. Writing pads with blanks, moves the sign
next to the first digit, and shows ``#`` in the place of digits when there are more of them than the picture has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

import pyarrow as pa

from headwater.base.schema import duckdb_type
from headwater.sql.casts import cast
from headwater.sql.functions.datetime_format import date_format
from headwater.sql.functions.function import Builder, Form, Function
from headwater.sql.functions.typing import argument, constant
from headwater.sql.nodes import Call, Literal, Node, Refused, call
from headwater.sql.types import STRING, digits_of, family, name_of
from headwater.sql.udfs import Failed, define

__all__ = ["FUNCTIONS"]

_DIGITS = "[09]+(?:[,G][09]+)*"
_PICTURE = re.compile(rf"(MI|S)?(\$?)({_DIGITS})?([.D]([09]*))?(MI|S|PR)?")
_BLANKS = " \t\n\v\f\r\x1c\x1d\x1e\x1f"
_HINT = "write a picture such as '999,999.99' or 'S0000'"


@dataclass(frozen=True, slots=True)
class _Picture:
    """The parts of a picture; ``groups`` are those before the point, from the left."""

    front: str
    dollar: bool
    groups: tuple[str, ...]
    point: bool
    after: str
    back: str

    @property
    def digits(self) -> tuple[int, int]:
        """How many digits a number has, and how many of them are after the point."""
        return sum(map(len, self.groups)) + len(self.after), len(self.after)


@lru_cache(maxsize=256)
def _picture(text: str) -> _Picture:
    match = _PICTURE.fullmatch(text.upper())
    if match is None:
        raise Refused(f"the picture {text!r} of a number", _HINT)
    front, dollar, before, point, after, back = match.groups()
    groups = tuple(re.split("[,G]", before)) if before else ()
    found = _Picture(front or "", bool(dollar), groups, bool(point), after or "", back or "")
    if (found.front and found.back) or not 1 <= found.digits[0] <= 38:
        raise Refused(f"the picture {text!r} of a number", _HINT)
    return found


def _fits(group: str, count: int) -> bool:
    return count == len(group) if group.startswith("0") else count <= len(group)


class _Text:
    """A text that is read from the left."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def take(self, chars: str) -> str:
        """The next character if it is one of these."""
        found = self.text[self.at : self.at + 1]
        if not found or found not in chars:
            return ""
        self.at += 1
        return found

    def digits(self, groups: Sequence[str]) -> str | None:
        """Digits, blanks and commas, if they are as many as the groups from the right allow."""
        found = ""
        while char := self.take(f"0123456789,{_BLANKS}"):
            found += char if char not in _BLANKS else ""
        sizes = [len(part) for part in found.split(",")][::-1]
        if len(sizes) > len(groups):
            return None
        sizes += [0] * (len(groups) - len(sizes))
        fits = all(map(_fits, reversed(groups), sizes))
        return found.replace(",", "") if fits else None


def _number(text: str, picture: _Picture) -> Decimal | None:
    """The number that a text shows, or None if it is not of the picture."""
    if not text.isascii():
        raise Failed("a text with other letters than ASCII as a number")
    rest = _Text(text)
    opened = picture.back == "PR" and bool(rest.take("<"))
    signs = {"S": "+-", "MI": "-"}
    negative = bool(picture.front) and rest.take(signs[picture.front]) == "-"
    if picture.dollar and rest.at < len(text) and not rest.take("$"):
        return None
    before = rest.digits(picture.groups) if picture.groups else ""
    pointed = picture.point and bool(rest.take("."))
    after = rest.digits(["9" * len(picture.after)]) if picture.after else ""
    if before is None or after is None or (after and not pointed):
        return None
    if picture.back in signs:
        negative = rest.take(signs[picture.back]) == "-"
    closed = picture.back == "PR" and bool(rest.take(">"))
    if rest.at < len(text) or opened != closed or not before + after:
        return None
    scale = len(picture.after)
    figures = tuple(map(int, before + after.ljust(scale, "0")))
    return Decimal((int(negative or closed), figures, -scale))


def _read(text: str, pattern: str) -> Decimal:
    found = _number(text, _picture(pattern))
    if found is None:
        raise Failed(f"to_number(): a text that does not fit {pattern!r}")
    return found


def _digits_before(before: str, groups: Sequence[str]) -> str:
    """The digits (padded with blanks) in their groups."""
    out, at = "", 0
    for number, group in enumerate(groups):
        if number:
            out += "," if out[-1:].isdigit() else " "
        part = before[at : at + len(group)]
        out += part.replace(" ", "0") if group.startswith("0") else part
        at += len(group)
    return out


def _unpointed(out: str) -> str:
    """A point with nothing behind it is a blank."""
    at = out.find(".")
    return out[:at] + " " + out[at + 1 :] if at >= 0 and out[at + 1 : at + 2] in ("", " ") else out


def _signed(out: str, sign: str) -> str:
    """The sign behind the last character that is no blank, and the blanks after it."""
    kept = out.rstrip(" ") or out[:0]
    return kept + sign + out[len(kept) :]


def _shown(value: Decimal, pattern: str) -> str:
    picture = _picture(pattern)
    whole, _, fraction = format(abs(value), "f").partition(".")
    whole, fraction = whole.lstrip("0"), fraction.rstrip("0")
    every, places = picture.digits
    room = every - places
    if len(whole) > room or len(fraction) > places:
        whole, fraction = "#" * room, "#" * places
    body = _digits_before(whole.rjust(room), picture.groups)
    negative = value < 0
    front = {"S": "-" if negative else "+", "MI": "-" if negative else " ", "": ""}[picture.front]
    if picture.back == "PR" and negative:
        front = "<"
    if picture.dollar:
        out = f"{front}${body}"
    else:
        kept = body.lstrip(" ")
        out = body[: len(body) - len(kept)] + front + kept
    if picture.point:
        # A number without a whole part shows a zero there, if there is a place for it.
        out = (out[:-1] + "0" if out.endswith(" ") else out) + "."
    out += fraction.ljust(places, "0")
    if picture.back == "S" or (picture.back and negative):
        sign = ">" if picture.back == "PR" else "-" if negative else "+"
        out = _signed(_unpointed(out), sign)
    elif picture.back == "MI":
        out += " "
    elif picture.back == "PR":
        out = _unpointed(out) + "  "
    out = _unpointed(out)
    return "0" if out in ("", "+", "-") else out


def _pattern(node: Node, name: str) -> Literal:
    text = constant(argument("s", node, name), name, _HINT)
    assert isinstance(text, str)
    _picture(text)
    return Literal(text, STRING)


def _to_number(name: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        pattern = _pattern(args[1], name)
        if not _picture(str(pattern.value)).groups:
            raise Refused(f"{name}() with a picture without digits before the point", "begin it with 9 or 0")
        if family(args[0].dtype) not in ("string", "null"):
            raise Refused(f"{name}() of {name_of(args[0].dtype)}", "it reads texts")
        dtype = pa.decimal128(*_picture(str(pattern.value)).digits)
        return call(name, (cast(args[0], STRING), pattern), dtype, fallible=True)

    return build


def _to_number_form(name: str) -> Form:
    def form(node: Call, a: list[str]) -> str:
        suffix = f"{node.dtype.precision}_{node.dtype.scale}"
        body = _read if name == "to_number" else lambda text, pattern: _number(text, _picture(pattern))
        return f"{define(f'{name}_{suffix}', 'VARCHAR VARCHAR', node.dtype, body)}({a[0]}, {a[1]})"

    return form


_OF_BYTES = {"base64": ("base64", False), "hex": ("hex", False), "utf-8": ("decode text", True)}


def _of_bytes(value: Node, form: Node, name: str) -> Node:
    """A binary as a text in hex, base64 or UTF-8."""
    word = constant(form, name, "write to_char(x, 'hex')")
    if not isinstance(word, str) or word.lower() not in _OF_BYTES:
        raise Refused(f"{name}() of a binary by {word!r}", "use 'hex', 'base64' or 'utf-8'")
    op, fallible = _OF_BYTES[word.lower()]
    more = (Literal("UTF-8", STRING),) if fallible else ()
    return call(op, (value, *more), STRING, fallible=fallible)


def _to_char(name: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        value = args[0]
        if family(value.dtype) == "binary":
            return _of_bytes(value, args[1], name)
        if family(value.dtype) in ("date", "timestamp", "timestamp_ntz"):
            return date_format(args)
        if family(value.dtype) not in ("integer", "decimal"):
            hint = "cast it to a decimal first"
            raise Refused(f"{name}() of {name_of(value.dtype)}", hint)
        digits = digits_of(value.dtype)
        assert digits is not None
        return call("to_char", (cast(value, pa.decimal128(*digits)), _pattern(args[1], name)), STRING)

    return build


def _to_char_form(node: Call, a: list[str]) -> str:
    given = node.args[0].dtype
    name = f"to_char_{given.precision}_{given.scale}"
    return f"{define(name, f'{duckdb_type(given)} VARCHAR', STRING, _shown)}({a[0]}, {a[1]})"


_NOTE = "by a constant picture of 0 9 . , $ S MI PR"
_TO_CHAR = f"numbers {_NOTE}; times by a pattern, binaries by 'hex', 'base64' or 'utf-8'"
FUNCTIONS: tuple[Function, ...] = (
    *(
        Function(name, "string", _to_number(name), 2, 2, {name: _to_number_form(name)}, note=_NOTE)
        for name in ("to_number", "try_to_number")
    ),
    Function("to_char", "string", _to_char("to_char"), 2, 2, {"to_char": _to_char_form}, note=_TO_CHAR),
    Function("to_varchar", "string", _to_char("to_varchar"), 2, 2, note=_TO_CHAR),
)
