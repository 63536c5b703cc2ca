"""What a query means, without an index: a plain matcher of rows, for tests that hold searches against it.

It knows the tree of the language and the analyzers, and nothing of splits, terms lists or the library's queries.
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

from headwater.search.analyzers import Analyzer
from headwater.search.fields import Field
from headwater.search.language import (
    ANY,
    And,
    Boost,
    Everything,
    Exists,
    Fuzzy,
    Node,
    Not,
    Occurs,
    OneOf,
    Or,
    Pattern,
    Phrase,
    Range,
    Regex,
    Term,
    Wildcard,
)

__all__ = ["edits", "matches"]

MAX_TERM_BYTES = 65_530


def matches(node: Node, row: Mapping[str, Any], fields: Mapping[str, Field], defaults: Sequence[str]) -> bool:
    """Whether a row meets a query; ``defaults`` are the columns of what names no field."""

    def holds(one: Node) -> bool:
        match one:
            case And(children):
                return all(map(holds, children))
            case Or(children):
                return any(map(holds, children))
            case Not(child):
                return not holds(child)
            case Boost(child, _):
                return holds(child)
            case Everything():
                return True
            case Occurs(must, should, must_not):
                wanted = all(map(holds, must)) and not any(map(holds, must_not))
                return wanted and (bool(must) or not should or any(map(holds, should)))
        columns = defaults if one.field is None else [one.field]
        return any(_leaf(one, row, fields, column) for column in columns)

    return holds(node)


def _leaf(leaf: Any, row: Mapping[str, Any], fields: Mapping[str, Field], path: str) -> bool:
    column, _, inside = path.partition(".")
    f, value = fields[column], row[column]
    if f.kind == "json":
        return _in_json(leaf, value, inside, f.analysis)
    if f.kind == "ip" and value is not None and _address(value) is None:
        value = None  # what is no address is not found by addresses
    if isinstance(leaf, Exists) or value is None:
        return value is not None
    if f.is_text:
        return _in_text(leaf, value, f)
    if isinstance(leaf, OneOf):
        return any(_equals(f.kind, value, one) for one in leaf.values)
    if isinstance(leaf, Range):
        return _in_range(leaf, _plain(f.kind, value), lambda text: _plain(f.kind, _read(f.kind, text)))
    assert isinstance(leaf, Term | Phrase)
    return _equals(f.kind, value, leaf.text)


# -- text ------------------------------------------------------------------------------------------------------------


def _tokens(analyzer: Analyzer, text: str) -> list[tuple[int, str]]:
    return [(one.position, one.text) for one in analyzer.build().pre_tokenize(text).tokens]


def _in_text(leaf: Any, value: str, f: Field) -> bool:
    analyzer = f.analysis
    have = [(n, t) for n, t in _tokens(analyzer, value) if len(t.encode()) <= MAX_TERM_BYTES]
    words = {t for _, t in have}
    match leaf:
        case OneOf(values=values):
            return any(_in_text(Term(None, one), value, f) for one in values if one)
        case Term(text=text) | Phrase(text=text, prefix=False):
            return _has_sequence(have, [(0, text)] if f.kind == "keyword" else _tokens(analyzer, text))
        case Phrase(text=text):
            return _has_sequence(have, _tokens(analyzer, text), prefix=True)
        case Wildcard(pattern=pattern):
            return any(_pattern(pattern, analyzer).fullmatch(word) for word in words)
        case Regex(pattern=pattern):
            return any(re.fullmatch(pattern, word, re.DOTALL) for word in words)
        case Fuzzy(text=text, distance=distance, prefix=prefix):
            asked = [text] if f.kind == "keyword" else [t for _, t in _tokens(analyzer, text)]
            return bool(asked) and all(any(_near(one, word, distance, prefix) for word in words) for one in asked)
        case Range():
            return any(_in_range(leaf, word, lambda text: _folded(analyzer, text)) for word in words)
    raise AssertionError(leaf)


def _has_sequence(have: list[tuple[int, str]], wanted: list[tuple[int, str]], *, prefix: bool = False) -> bool:
    if not wanted:
        return False
    there = set(have)
    first = wanted[0][0]
    for start in {n for n, _ in have}:
        exact = wanted[:-1] if prefix else wanted
        if all((start + n - first, word) in there for n, word in exact):
            at, last = wanted[-1]
            if not prefix or any(n == start + at - first and t.startswith(last) for n, t in have):
                return True
    return False


def _folded(analyzer: Analyzer, text: str) -> str:
    return "".join(c.lower() for c in text) if analyzer.lowers else text


def _pattern(pattern: Pattern, analyzer: Analyzer) -> re.Pattern[str]:
    parts = (re.escape(_folded(analyzer, p)) if isinstance(p, str) else ".*" if p is ANY else "." for p in pattern)
    return re.compile("".join(parts), re.DOTALL)


def _near(asked: str, word: str, distance: int, prefix: bool) -> bool:
    if not prefix:
        return edits(asked, word) <= distance
    return any(edits(asked, word[:n]) <= distance for n in range(len(word) + 1))


def edits(one: str, two: str) -> int:
    """How many letters have to be put in, left out, replaced or swapped with their neighbour, none of them twice."""
    if abs(len(one) - len(two)) > 2:
        return 3
    before: list[int] = []
    row = list(range(len(two) + 1))
    for n, a in enumerate(one, 1):
        before, last, row = row, before, [n]
        for m, b in enumerate(two, 1):
            row.append(min(before[m] + 1, row[m - 1] + 1, before[m - 1] + (a != b)))
            if n > 1 and m > 1 and a == two[m - 2] and one[n - 2] == b:
                row[m] = min(row[m], last[m - 2] + 1)
    return row[-1]


# -- values ----------------------------------------------------------------------------------------------------------


def _in_range(leaf: Range, value: Any, read: Any) -> bool:
    if leaf.lower is not None:
        low = read(leaf.lower)
        if value < low or (value == low and not leaf.include_lower):
            return False
    if leaf.upper is not None:
        high = read(leaf.upper)
        if value > high or (value == high and not leaf.include_upper):
            return False
    return True


def _equals(kind: str, value: Any, text: str) -> bool:
    if kind == "ip" and "/" in text:
        address = _address(value)
        return address is not None and address in ipaddress.IPv6Network(_mapped_network(text), strict=False)
    return bool(_plain(kind, value) == _plain(kind, _read(kind, text)))


def _mapped_network(text: str) -> str:
    host, _, length = text.partition("/")
    return f"::ffff:{host}/{96 + int(length)}" if "." in host else text


def _plain(kind: str, value: Any) -> Any:
    """A value so that Python's order is that of the index: not-a-number is the largest."""
    if kind == "float":
        number = float(value)
        return (1, 0.0) if math.isnan(number) else (0, number)
    if kind == "ip":
        return _address(value)
    if kind == "timestamp" and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    return value


def _address(text: str) -> ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(text.strip())
    except ValueError:
        return None
    return found if isinstance(found, ipaddress.IPv6Address) else ipaddress.IPv6Address(f"::ffff:{found}")


def _read(kind: str, text: str) -> Any:
    readers: dict[str, Any] = {
        "integer": int,
        "float": float,
        "boolean": lambda one: one == "true",
        "date": date.fromisoformat,
        "timestamp": datetime.fromisoformat,
        "binary": bytes.fromhex,
        "ip": str,
    }
    return readers[kind](text)


# -- JSON ------------------------------------------------------------------------------------------------------------


def _in_json(leaf: Any, value: Any, inside: str, analyzer: Analyzer) -> bool:
    if isinstance(leaf, Exists) and not inside:
        return value is not None
    found = _values(value, inside)
    if isinstance(leaf, Exists):
        return bool(found)
    if isinstance(leaf, Range):
        ends = [(leaf.lower, True), (leaf.upper, False)]
        numbers = [one for one in found if isinstance(one, int | float)]
        for end, is_lower in ends:
            if end is not None:
                half = Range(None, end if is_lower else None, None if is_lower else end,
                             is_lower and leaf.include_lower, not is_lower and leaf.include_upper)  # fmt: skip
                if not any(_in_range(half, one, float) for one in numbers):
                    return False
        return True
    assert isinstance(leaf, Term | Phrase)
    wanted = _tokens(analyzer, leaf.text)
    return any(
        _has_sequence(_tokens(analyzer, one), wanted) if isinstance(one, str) else str(one) == leaf.text
        for one in found
    )


def _values(value: Any, inside: str) -> list[Any]:
    """The scalars at a path of what Arrow gives for a struct, a list or a map."""
    if value is None:
        return []
    if isinstance(value, list) and all(isinstance(one, tuple) for one in value) and value:
        value = dict(value)
    if isinstance(value, dict):
        if not inside:
            return []
        name, _, rest = inside.partition(".")
        return _values(value.get(name), rest)
    if inside not in ("", "_"):
        return []
    return [one for one in value if one is not None] if isinstance(value, list) else [value]
