"""Row patterns in a stream: what happened, told by the order in which it happened.

`match` takes a row pattern, as MATCH_RECOGNIZE does, or a list of events that follow one another with anything between
them. Both become the same SQL, so they mean what it means in `lake.sql`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import pyarrow as pa

from headwater.base.errors import InputError
from headwater.timeseries.methods.base import Methods
from headwater.timeseries.methods.texts import named_texts, sql_text
from headwater.timeseries.moments import length_in
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.match import END, START, MatchRows
from headwater.timeseries.querying import quoted
from headwater.timeseries.times import time_field

if TYPE_CHECKING:
    from headwater.timeseries.methods.ordered_arguments import Length
    from headwater.timeseries.methods.texts import Expression, Named

__all__ = ["PatternMethods"]

_SKIP_TO = re.compile(r"(first|last)[\s_]+(.+)", re.IGNORECASE)
_SKIPS = {"past last row": "PAST LAST ROW", "next row": "TO NEXT ROW"}


class PatternMethods(Methods):
    """Methods that look for stretches of rows."""

    def match(
        self,
        pattern: str | None = None,
        define: Mapping[str, Expression] | None = None,
        *,
        events: Mapping[str, Expression | None] | None = None,
        measures: Named | None = None,
        within: Length | None = None,
        skip: str | None = None,
        rows: Literal["one", "all"] = "one",
        unmatched: bool = False,
        empty: bool = True,
        subset: Mapping[str, Sequence[str]] | None = None,
    ) -> Self:
        """The stretches of each series that fit a row pattern: the MATCH_RECOGNIZE of SQL.

        ``payments.match("small{3,} large", {"small": "amount < 2", "large": "amount > 100 * avg(small.amount)"})``

        Parameters
        ----------
        pattern : str
            variables with quantifiers, alternatives and the like: ``A B+ (C | D){2,3}?``
        define : mapping of str to str or Column
            for each variable the condition for its rows; one without a condition takes any row. Conditions may name
            earlier rows: ``price < PREV(price)``, ``price > A.price``, ``sum(B.amount) > 10``
        events : mapping of str to str, Column or None
            instead of a pattern: conditions of rows that follow one another, with any rows between them. Each row that
            meets the first one begins a match of its own, if the others follow; the earliest that do are taken
        measures : mapping of str to str or Column
            values of a match, by their names: ``{"low": "min(B.price)", "what": "CLASSIFIER()"}``
        within : length of time, optional
            how long after the first row of a match its last one may be
        skip : str
            where the search goes on: ``"past last row"`` (for a pattern), ``"next row"`` (for events), ``"first B"``
            or ``"last B"``
        rows : {"one", "all"}
            a row for each match: the series, ``start`` and ``end`` of the match, the tiebreak of its first row, and the
            measures; or all rows of all matches, with the measures as they are at each of them
        unmatched : bool
            with ``rows="all"``, the rows outside of matches too, with nulls for measures
        empty : bool
            whether a match without rows gives one
        subset : mapping of str to sequence of str
            names for several variables together: ``{"any": ["A", "B"]}``

        Examples
        --------
        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> prices = PatternMethods(Values(pa.table({"t": [1, 2, 3, 4], "p": [5, 3, 4, 6]})), Ordering("t"))
        >>> falls = {"down": "p < PREV(p)", "up": "p > PREV(p)"}
        >>> run_here(prices.match("A down+ up+", falls, measures={"low": "LAST(down.p)"}).plan).to_pylist()
        [{'start': 1, 'end': 4, 'low': 3}]
        >>> run_here(prices.match(events={"a": "p > 4", "b": "p > a.p"}).plan).to_pylist()
        [{'start': 1, 'end': 4}]
        """
        ordering = self._ordered("match")
        if (pattern is None) == (events is None):
            raise InputError.bad_argument("pattern", pattern, "a pattern, or events=, and not both")
        if events is not None:
            if define is not None or subset is not None:
                raise InputError.bad_argument("define", define, "conditions in events= alone")
            pattern, define = _in_turn(events)
        found = {name: sql_text("define", condition) for name, condition in (define or {}).items()}
        clauses = [
            f"PARTITION BY {', '.join(map(quoted, ordering.by))}" if ordering.by else "",
            f"ORDER BY {', '.join(map(quoted, (ordering.time, *ordering.tiebreak)))}",
            _measures({} if measures is None else named_texts([measures], {}), ordering, rows),
            _rows(rows, unmatched=unmatched, empty=empty),
            _skip(skip or ("next row" if events is not None else "past last row")),
            f"PATTERN ({_text('pattern', pattern)})",
            self._within(within, ordering),
            _subset(subset or {}),
            f"DEFINE {', '.join(f'{quoted(name)} AS {text}' for name, text in found.items())}" if found else "",
        ]
        text = f"SELECT * FROM rows MATCH_RECOGNIZE ({' '.join(c for c in clauses if c)})"
        node = MatchRows(self.plan, ordering, text, empty).sliced()
        names = [name.lower() for name in node.schema.names]
        if len(set(names)) < len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise InputError.bad_argument("measures", twice, "names that no other column of the result has")
        return self._with(node, Ordering(START, ordering.by, ordering.tiebreak) if rows == "one" else None)

    def _within(self, within: Length | None, ordering: Ordering) -> str:
        if within is None:
            return ""
        field = time_field(self.schema, ordering.time)
        length = length_in(within, field, "within")
        if length < 0:
            raise InputError.bad_argument("within", within, "a length that is not negative")
        if pa.types.is_timestamp(field.type):
            seconds, rest = divmod(length, 1_000_000)
            return f"WITHIN INTERVAL '{seconds}.{rest:06d}' SECOND"
        return f"WITHIN INTERVAL '{length}' DAY" if pa.types.is_date(field.type) else f"WITHIN {length}"


def _in_turn(events: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Events one after the other as a pattern: between two of them, as few rows as possible."""
    if not isinstance(events, Mapping) or len(events) < 1:
        raise InputError.bad_argument("events", events, 'conditions by name, in their order: {"a": "x > 1", "b": None}')
    gap = "between"
    while any(gap == name.lower() for name in events):
        gap += "_"
    pattern = f" {gap}*? ".join(map(quoted, events))
    return pattern, {name: condition for name, condition in events.items() if condition is not None}


def _measures(given: Mapping[str, str], ordering: Ordering, rows: str) -> str:
    time = quoted(ordering.time)
    own = {START: f"FIRST({time})", END: f"LAST({time})"} if rows == "one" else {}
    taken = {name.lower() for name in (*own, *ordering.by)} & {name.lower() for name in given}
    if rows == "one":
        own |= {name: f"FIRST({quoted(name)})" for name in ordering.tiebreak}
    if taken:
        raise InputError.bad_argument("measures", sorted(taken), "names that no other column of the result has")
    every = {**own, **given}
    return f"MEASURES {', '.join(f'{text} AS {quoted(name)}' for name, text in every.items())}" if every else ""


def _rows(rows: str, *, unmatched: bool, empty: bool) -> str:
    if rows not in ("one", "all"):
        raise InputError.bad_argument("rows", rows, '"one" or "all"')
    if rows == "one":
        if unmatched:
            raise InputError.bad_argument("unmatched", unmatched, 'rows="all" with it')
        return "ONE ROW PER MATCH"
    more = " WITH UNMATCHED ROWS" if unmatched else "" if empty else " OMIT EMPTY MATCHES"
    return f"ALL ROWS PER MATCH{more}"


def _skip(skip: str) -> str:
    words = _text("skip", skip).strip()
    if (plain := words.replace("_", " ").lower()) in _SKIPS:
        return f"AFTER MATCH SKIP {_SKIPS[plain]}"
    match = _SKIP_TO.fullmatch(words)
    if match is None:
        raise InputError.bad_argument("skip", skip, '"past last row", "next row", "first B" or "last B"')
    return f"AFTER MATCH SKIP TO {match[1].upper()} {quoted(match[2])}"


def _subset(subset: Mapping[str, Sequence[str]]) -> str:
    parts = []
    for name, members in subset.items():
        if isinstance(members, str) or not members:
            raise InputError.bad_argument("subset", members, 'variables by the name of the set: {"any": ["A", "B"]}')
        parts.append(f"{quoted(name)} = ({', '.join(map(quoted, members))})")
    return f"SUBSET {', '.join(parts)}" if parts else ""


def _text(argument: str, given: Any) -> str:
    if not isinstance(given, str) or not given.strip():
        raise InputError.bad_argument(argument, given, "text")
    return given
