"""The aggregates in a text: where they stand, what they are given, and the same text with other ones in their place.

The problem: users write ``sum(price * size) / sum(size)`` for a window, whatever its kind. A window that rows fall into
groups them, a window that a row has of its own puts OVER after each aggregate, and a fast kernel computes the
aggregates by themselves and the rest of the text from their results. The idea: all of that is cutting the text at its
aggregate calls, which tokens tell without understanding the rest; what the pieces mean is the SQL reader's affair.

Some aggregates go by the order of rows (`first`, `last`, `collect_list` and their other names). Spark takes whatever
order rows arrive in. Here they mean the order of the series, and are written as aggregates by a key, ``min_by(value,
key)``, which both engines compute alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from headwater.base.errors import UnsupportedError
from headwater.sql.functions.catalogue import AGGREGATES
from headwater.sql.tokens import Token, tokenize

__all__ = ["Call", "by_key", "calls_in", "names_in", "over", "replaced"]

_FIRST = frozenset({"first", "first_value", "any_value"})
_LAST = frozenset({"last", "last_value"})
_LIST = frozenset({"collect_list", "array_agg"})
_JOINED = frozenset({"listagg", "string_agg"})


@dataclass(frozen=True, slots=True)
class Call:
    """An aggregate in a text.

    Attributes
    ----------
    function : str
        its name, in small letters
    arguments : tuple of str
        what it is given
    start, end : int
        where it stands in the text, with all that belongs to it
    skips_nulls : bool
        ``first(x, true)`` or ``first(x) IGNORE NULLS``
    distinct : bool
        ``count(DISTINCT x)``
    tail : str
        FILTER (…) and WITHIN GROUP (…)
    """

    function: str
    arguments: tuple[str, ...]
    start: int
    end: int
    skips_nulls: bool = False
    distinct: bool = False
    tail: str = ""

    @property
    def by_order(self) -> bool:
        """Whether the order of rows decides."""
        return self.function in _FIRST | _LAST | _LIST

    @property
    def is_first(self) -> bool:
        return self.function in _FIRST

    @property
    def is_last(self) -> bool:
        return self.function in _LAST


def calls_in(text: str) -> list[Call]:
    """The aggregates of a text, from left to right.

    >>> [(c.function, c.arguments, c.tail) for c in calls_in("sum(a * f(b)) / count(*) FILTER (WHERE b > 0)")]
    [('sum', ('a * f(b)',), ''), ('count', ('*',), 'FILTER (WHERE b > 0)')]
    """
    tokens = list(tokenize(text))
    found: list[Call] = []
    at = 0
    while at < len(tokens) - 1:
        token = tokens[at]
        name = token.text.lower()
        if token.kind == "word" and name in AGGREGATES and tokens[at + 1].text == "(" and not _follows_dot(tokens, at):
            call, at = _call(text, tokens, at)
            found.append(call)
        else:
            at += 1
    return found


def _follows_dot(tokens: Sequence[Token], at: int) -> bool:
    return at > 0 and tokens[at - 1].text == "."


def _call(text: str, tokens: Sequence[Token], at: int) -> tuple[Call, int]:
    name = tokens[at].text.lower()
    close = _closing(tokens, at + 1)
    arguments, distinct, skips = _arguments(text, tokens[at + 2 : close])
    end = close + 1
    if end + 1 < len(tokens) and tokens[end].word in ("IGNORE", "RESPECT") and tokens[end + 1].word == "NULLS":
        skips = skips or tokens[end].word == "IGNORE"
        end += 2
    if name in _FIRST | _LAST and len(arguments) == 2 and arguments[1].lower() in ("true", "false"):
        skips = skips or arguments[1].lower() == "true"
        arguments = arguments[:1]
    tail = end
    while tail < len(tokens) - 1:
        if tokens[tail].word == "FILTER" and tokens[tail + 1].text == "(":
            tail = _closing(tokens, tail + 1) + 1
        elif tokens[tail].word == "WITHIN" and tokens[tail + 1].word == "GROUP" and tail + 2 < len(tokens):
            tail = _closing(tokens, tail + 2) + 1
        else:
            break
    after = text[tokens[end].start : tokens[tail - 1].end] if tail > end else ""
    return Call(name, arguments, tokens[at].start, tokens[tail - 1].end, skips, distinct, after), tail


def _closing(tokens: Sequence[Token], at: int) -> int:
    depth = 0
    for place in range(at, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[place].text, 0) if tokens[place].kind == "mark" else 0
        if depth == 0:
            return place
    # The reader says what is wrong with it, and where.
    return len(tokens) - 1


def _arguments(text: str, tokens: Sequence[Token]) -> tuple[tuple[str, ...], bool, bool]:
    distinct = bool(tokens) and tokens[0].word == "DISTINCT"
    if distinct:
        tokens = tokens[1:]
    skips = False
    if len(tokens) > 2 and tokens[-1].word == "NULLS" and tokens[-2].word in ("IGNORE", "RESPECT"):
        skips = tokens[-2].word == "IGNORE"
        tokens = tokens[:-2]
    parts: list[list[Token]] = [[]] if tokens else []
    depth = 0
    for token in tokens:
        if token.kind == "mark" and token.text in "([{":
            depth += 1
        elif token.kind == "mark" and token.text in ")]}":
            depth -= 1
        if token.kind == "mark" and token.text == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return tuple(text[p[0].start : p[-1].end] for p in parts if p), distinct, skips


def replaced(text: str, other: Callable[[Call], str]) -> str:
    """The text with something else in the place of each aggregate.

    >>> replaced("sum(a) / count(*)", lambda call: call.function.upper())
    'SUM / COUNT'
    """
    out, at = [], 0
    for call in calls_in(text):
        out += [text[at : call.start], other(call)]
        at = call.end
    return "".join([*out, text[at:]])


def by_key(text: str, key: str) -> str:
    """The text with aggregates that go by order written as aggregates by a key.

    >>> by_key("last(p) - first(p, true)", "place")
    'max_by(p, place) - min_by(p, CASE WHEN (p) IS NOT NULL THEN place END)'
    """
    return replaced(text, lambda call: _keyed(text, call, key, ""))


def over(text: str, window: str, key: str | None = None) -> str:
    """The text with its aggregates as window functions; those that go by order by ``key``.

    >>> over("max(p) - min(p)", "PARTITION BY s")
    'max(p) OVER (PARTITION BY s) - min(p) OVER (PARTITION BY s)'
    """
    return replaced(text, lambda call: _keyed(text, call, key, f" OVER ({window})"))


def _keyed(text: str, call: Call, key: str | None, window: str) -> str:
    if call.function in _JOINED and "WITHIN" not in call.tail.upper():
        hint = "say in which: listagg(x, ',') WITHIN GROUP (ORDER BY x)"
        raise UnsupportedError.operation(
            f"{call.function}()", "its values are put one after the other in an order", hint
        )
    tail = f" {call.tail}" if call.tail else ""
    if key is None or not call.by_order or call.distinct or len(call.arguments) != 1:
        return text[call.start : call.end] + window
    value = call.arguments[0]
    if call.function in _LIST:
        pair = f"CASE WHEN ({value}) IS NOT NULL THEN named_struct('k', {key}, 'v', {value}) END"
        return f"transform(sort_array(collect_list({pair}){tail}{window}), e -> e.v)"
    chosen = f"CASE WHEN ({value}) IS NOT NULL THEN {key} END" if call.skips_nulls else key
    return f"{'min_by' if call.is_first else 'max_by'}({value}, {chosen}){tail}{window}"


def names_in(text: str, columns: Sequence[str]) -> Iterator[str]:
    """The columns that a text may read: those whose names stand in it, and all of them if a star does.

    >>> list(names_in("sum(`a b` * Price)", ["price", "a b", "c"]))
    ['price', 'a b']
    """
    tokens = list(tokenize(text))
    words = {str(token.value).lower() for token in tokens if token.kind in ("word", "name")}
    star = any(
        token.text == "*" and before.text in ("(", ",") and function.word != "COUNT"
        for function, before, token in zip(tokens, tokens[1:], tokens[2:], strict=False)
    )
    yield from (name for name in columns if star or name.lower() in words)
