"""`--param name=value`: what type has a value that was typed in a shell?

A value is read as SQL would read it where it looks like a literal, and is text otherwise; quotes make it text for
certain.

| typed | is |
|---|---|
| `5`, `-3` | a whole number |
| `1.50` | a decimal, exact |
| `1e3` | a double |
| `true`, `false`, `null` | those |
| `date'2024-05-01'` | a date |
| `timestamp'2024-05-01 12:00:00'` | an instant, UTC unless it has a zone |
| `'5'` | text, without the quotes |
| anything else | text |
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal

from headwater.base.errors import InputError

__all__ = ["parse_parameters", "parse_value"]

_WORDS = {"true": True, "false": False, "null": None}
_TIMED = re.compile(r"(date|timestamp)\s*'([^']*)'", re.IGNORECASE)


def parse_parameters(given: Iterable[str]) -> dict[str, object]:
    """The parameters by name.

    >>> parse_parameters(["id=5", "name=o'neil"])
    {'id': 5, 'name': "o'neil"}
    """
    parsed: dict[str, object] = {}
    for text in given:
        name, equals, value = text.partition("=")
        name = name.strip().removeprefix(":")
        if not equals or not name.isidentifier():
            raise InputError.bad_argument("--param", text, "name=value")
        parsed[name] = parse_value(value)
    return parsed


def parse_value(text: str) -> object:
    """The value that a text stands for.

    >>> parse_value("1.50"), parse_value("'1.50'"), parse_value("DATE'2024-05-01'")
    (Decimal('1.50'), '1.50', datetime.date(2024, 5, 1))
    """
    bare = text.strip()
    if bare.lower() in _WORDS:
        return _WORDS[bare.lower()]
    if re.fullmatch(r"[+-]?[0-9]+", bare):
        return int(bare)
    if re.fullmatch(r"[+-]?([0-9]+\.[0-9]*|\.[0-9]+)", bare):
        return Decimal(bare)
    if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+", bare):
        return float(bare)
    if timed := _TIMED.fullmatch(bare):
        return _moment(timed[1].lower(), timed[2], text)
    if len(bare) >= 2 and bare[0] == bare[-1] == "'":
        return bare[1:-1].replace("''", "'")
    return text


def _moment(kind: str, value: str, text: str) -> date | datetime:
    try:
        if kind == "date":
            return date.fromisoformat(value)
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise InputError.bad_argument("--param", text, f"ISO 8601 inside {kind}'…'") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
