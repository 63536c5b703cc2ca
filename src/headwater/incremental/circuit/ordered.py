"""Ordered: the rows of a stream by key and in an order, for what looks at neighbours.

>>> import headwater as hw, pyarrow as pa
>>> c = hw.Circuit()
>>> t = c.input("t", pa.schema([("who", pa.string()), ("day", pa.int64()), ("paid", pa.int64())]))
>>> t.over("who", order="day").lag("paid", name="before").output("o")
>>> _ = c.step(t=pa.table({"who": ["ann", "ann"], "day": [1, 3], "paid": [10, 30]}))
>>> late = pa.table({"who": ["ann"], "day": [2], "paid": [20]})
>>> [(r["day"], r["before"], r["_weight"]) for r in c.step(t=late)["o"].to_arrow().to_pylist()]
[(2, 10, 1), (3, 10, -1), (3, 20, 1)]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, Literal, cast

from headwater.base.errors import InputError, NotFoundError, SchemaError
from headwater.base.spans import distance
from headwater.incremental.dataflow.arguments import texts, whole
from headwater.incremental.layout import Order
from headwater.incremental.operators.frames import Frame, FrameFunction, Frames
from headwater.incremental.operators.lag import Lag, Shift
from headwater.incremental.operators.ranks import Rank, Ranks
from headwater.incremental.operators.settled import Below
from headwater.incremental.operators.topk import TopK
from headwater.incremental.recipes.present import present
from headwater.incremental.recipes.row_stream import S
from headwater.incremental.recipes.zero_keys import normalised

if TYPE_CHECKING:
    from headwater.incremental.operators.node import Node

__all__ = ["Ordered"]

Bound = int | str | timedelta | None
_RANKS = ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile")
_CALL = re.compile(r"\s*(\w+)\s*\(\s*(\*|`[^`]+`|\w+)?\s*(?:,\s*(\d+)\s*)?\)\s*", re.UNICODE)
_FUNCTIONS = (
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "stddev_samp",
    "stddev_pop",
    "var_samp",
    "var_pop",
    "first_value",
    "last_value",
    "nth_value",
)
_ALIASES = {"mean": "avg", "stddev": "stddev_samp", "std": "stddev_samp", "variance": "var_samp"}
_ALIASES |= {"first": "first_value", "last": "last_value"}


class Ordered(Generic[S]):
    """Rows by key and order: see `Stream.over`."""

    __slots__ = ("_keys", "_order", "_stream")

    def __init__(self, stream: S, keys: Sequence[str], order: Sequence[Order]) -> None:
        texts("keys", *keys)
        if len(set(keys)) < len(keys):
            raise SchemaError.duplicate_columns(list(keys))
        for name in (*keys, *(o.column for o in order)):
            if name not in stream.columns:
                raise NotFoundError.column(name, stream.columns, where="over")
        self._stream = stream
        self._keys = tuple(keys)
        self._order = tuple(order)

    def rank(self, **names: str) -> S:
        """Columns with the place of each row: ``rank(n="row_number", r="dense_rank", quarter="ntile(4)")``."""
        ranks = []
        texts("rank", *names.values())
        for name, text in names.items():
            found = re.fullmatch(r"\s*(\w+)\s*(?:\(\s*(\d*)\s*\))?\s*", text)
            if found is None or found[1] not in _RANKS:
                raise InputError.bad_argument(name, text, f"one of {', '.join(_RANKS)}")
            if found[2] and found[1] != "ntile":
                raise InputError.bad_argument(name, text, f"{found[1]}() without a number: only ntile() has one")
            ranks.append(Rank(name, cast("Any", found[1]), whole(name, int(found[2] or 1))))
        return self._with(lambda s, columns: Ranks(s, ranks, columns=columns))

    def lag(self, column: str, offset: int = 1, *, name: str, default: object = None) -> S:
        """A column with the value of the row ``offset`` places before, or ``default`` where there is none."""
        whole("offset", offset)
        if column not in self._stream.columns:
            raise NotFoundError.column(column, self._stream.columns, where="lag")
        return self._with(lambda s, columns: Lag(s, [Shift(name, column, offset, default)], columns=columns))

    def lead(self, column: str, offset: int = 1, *, name: str, default: object = None) -> S:
        """A column with the value of the row ``offset`` places after, or ``default`` where there is none."""
        return self.lag(column, -whole("offset", offset), name=name, default=default)

    def agg(
        self,
        rows: tuple[int | None, int | None] | None = None,
        range: tuple[Bound, Bound] | None = None,  # noqa: A002
        **named: str,
    ) -> S:
        """Columns aggregated over the rows around each row: ``agg(rows=(-6, 0), mean="avg(v)")``.

        Parameters
        ----------
        rows
            from and to, in rows: -3 is three before, 0 the row itself, None without end
        range
            from and to, in units of the order column, or as ``"-10 minutes"``
        named
            ``name="sum(v)"``: count, sum, avg, min, max, stddev_samp, stddev_pop, var_samp, var_pop, first_value,
            last_value, nth_value(v, 2)
        """
        if rows is not None and range is not None:
            raise InputError.bad_argument("frame", "rows and range", "one of them")
        for given in (rows, range):
            if given is not None and not (isinstance(given, tuple | list) and len(given) == 2):
                raise InputError.bad_argument("frame", given, "a pair: from and to")
        texts("agg", *named.values())
        if rows is not None:
            frame = Frame("rows", *rows)
        elif range is not None:
            frame = Frame("range", *(distance(b) for b in range))
        else:
            frame = Frame() if self._order else Frame("rows", None, None)
        functions = [self._function(name, text) for name, text in named.items()]
        return self._with(lambda s, columns: Frames(s, functions, frame=frame, columns=columns))

    def top(self, k: int, *, offset: int = 0, by: Literal["row_number", "rank", "dense_rank"] = "row_number") -> S:
        """The first ``k`` rows of each key, after ``offset``; of rows equal in the order the least are first.

        ``by="rank"`` keeps all rows whose rank is at most ``k``, however many tie.
        """
        whole("k", k, 0)
        whole("offset", offset, 0)
        there = Ordered(present(self._stream), self._keys, self._order)
        return there._with(lambda s, columns: TopK(s, k, offset=offset, by=by, columns=columns))

    def _with(self, build: Callable[[Any, list[tuple[str, str]]], Node]) -> S:
        circuit = self._stream.circuit
        keyed, keys = normalised(self._stream, self._keys)
        arranged = circuit.arranged(keyed.vertex, keys, self._order, alone=True)
        columns = [(c, c) for c in self._stream.columns]
        vertex = circuit.add(lambda s: build(s, columns), [arranged])
        vertex.placed_by = arranged.placed_by if tuple(keys) == self._keys else None
        marks = self._stream.vertex.marks
        vertex.marks = {k: marks[k] for k in self._keys if k in marks}
        vertex.needs = tuple(Below(k, mark) for k, mark in list(vertex.marks.items())[:1])
        return self._stream.at(vertex)

    def _function(self, name: str, text: str) -> FrameFunction:
        found = _CALL.fullmatch(text)
        what = "" if found is None else _ALIASES.get(found[1].lower(), found[1].lower())
        if found is None or what not in _FUNCTIONS:
            raise InputError.bad_argument(name, text, f"one of {', '.join(_FUNCTIONS)} of a column")
        column = (found[2] or "").strip("`")
        if what == "count" and column == "*":
            return FrameFunction(name, "count_rows")
        if column not in self._stream.columns:
            raise NotFoundError.column(column, self._stream.columns, where=text)
        if found[3] and what != "nth_value":
            raise InputError.bad_argument(name, text, f"{what}() of a column only: nth_value() has a number")
        return FrameFunction(name, cast("Any", what), column, nth=int(found[3] or 1))
